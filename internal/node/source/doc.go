// Package source provides the pods that belong on this node: those that the API server has
// bound to it, and those that a directory of manifests defines.
//
// All sources work the same way:
//
//	API server  ──list, watch──►  API        ──┐
//	                                           ├──► handle(Change)
//	directory   ──read, notify─►  Manifests  ──┘
//
// The first change of a source is [Set], with all of its pods; it occurs once. After that
// there are only differences: [Update] for pods that are new or changed, [Remove] for pods
// that are gone, each with the last known object. A consumer that acts on no pod of a
// source before its Set never starts or stops a pod because of an incomplete list. A lost
// watch, an expired resource version or a relist results in Updates and Removes, never in a
// second Set.
//
// # Static pods
//
// Package manifest decodes the files. The UID of a static pod is made from its content, so
// an edit makes another pod: Remove of the old UID, then Update with the new one. Removing
// a file removes its pods. A file that becomes invalid while it is still there does not: the
// pods of its last valid content keep running until the file is valid again or gone, so that
// a typing error stops nothing. That content is kept in memory only: a file that is invalid
// when statusd starts defines no pods, as with the kubelet. [Manifests.Problems] returns
// what is wrong, with file, line and field.
//
// Package mirror writes a mirror pod of each static pod to the API.
//
// # Concurrency
//
// Constructors start nothing; Run blocks until its context ends and may be called once.
// A source calls its handler from one goroutine, one change at a time, and waits for it;
// two sources call independently, unless both are given the same [Serial] handler. Pods
// in a change are shared and must not be modified. All other methods may be called from any
// goroutine.
package source
