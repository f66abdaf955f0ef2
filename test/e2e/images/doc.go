// Package images makes the container images of Kubernetes' end-to-end specs from programs of this machine: a node of the
// suite has no registry. They contain only the files that the specs use.
package images
