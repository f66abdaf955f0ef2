// Package manifest decodes the manifests of static pods: files with Pods in YAML or JSON that
// a node runs without asking the API server. It fills in the API server's defaults, validates
// what a node can check alone, and gives each pod the identity that the kubelet gives to
// static pods:
//
//	file ──split──► documents ──strict decode──► Pod ──defaults──► validate ──► identity
//	                                                                  │
//	                                                                  ▼
//	                                               Problem: file, line, field, reason
//
// Decoding is strict: unknown fields, duplicate keys and values of the wrong type are
// problems, not warnings, since no API server would report them. All problems of a file are
// returned at once.
//
// # Identity
//
// The name of a static pod ends in the node's name, so that all nodes of a cluster may have
// the same manifest. Its UID is a hash of the content, the file and the node: an edit makes
// another pod, whereas comments, order and format do not. The hash is computed before the
// defaults are filled in. A later version that knows more defaults therefore restarts no pod.
//
// # Purity
//
// The package has no state: it reads neither disk nor clock, starts nothing, and may be used
// from any goroutine. See package source for a directory of manifests that is watched.
package manifest
