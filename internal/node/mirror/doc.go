// Package mirror writes mirror pods: for each static pod of the node, a copy of it in the API,
// so that users and controllers of the cluster can see the pod and its status.
//
//	directory   ──►  source.Manifests  ──┐
//	                                     ├── Observe(Change) ──►  Mirrors ──create, delete──►  API server
//	API server  ──►  source.API        ──┘
//
// [Mirrors] compares the static pods with the existing mirror pods. A missing mirror is created,
// the mirror of an edited manifest is replaced, and the mirror of a removed manifest is deleted as
// soon as no container of its static pod runs. Mirror pods are owned by the Node object and have
// the shape that the NodeRestriction admission plugin requires.
//
// # Concurrency
//
// [New] starts nothing; [Mirrors.Run] blocks until its context ends and may be called once.
// All other methods may be called from any goroutine.
package mirror
