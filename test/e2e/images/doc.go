// Package images makes the container images that Kubernetes' end-to-end specs name, of programs of this machine: a node of
// the suite has no registry. They have what the specs use of the published ones, not more.
package images
