// Package source says which pods belong on this node: those that the API server has bound
// to it, and those that a directory of manifests defines.
//
// The loop of each source is the same:
//
//	API server  ──list, watch──►  API        ──┐
//	                                           ├──► handle(Change)
//	directory   ──read, notify─►  Manifests  ──┘
//
// A source first says everything it knows in one change, [Set], exactly once. After that
// it says only what differs: [Update] for pods that are new or changed, [Remove] for pods
// that are gone, each with the last known object. A consumer that acts on no pod of a
// source before its Set can never start or stop a pod because of a half-known picture.
// A lost watch, an expired resource version or a relist shows up as Updates and Removes,
// never as a second Set.
//
// # Static pods
//
// Package manifest decodes the files. The UID of a static pod is made from its content, so
// an edit makes another pod: Remove of the old UID, then Update with the new one. Removing
// a file removes its pods. A file that becomes bad while it is still there does not: the pods of
// its last good reading run on until the file is good again or gone, so that a slip of
// the editor stops nothing. The last good reading is kept in memory only: a file that is
// bad when statusd starts defines no pods, as with the kubelet. [Manifests.Problems] names
// what is wrong, with file, line and field.
//
// Package mirror writes a mirror pod of each static pod to the API.
//
// # Concurrency
//
// Constructors start nothing; Run blocks until its context ends and may be called once.
// A source calls its handler from one goroutine, one change at a time, and waits for it;
// two sources call independently, unless both are given the same [Serial] handler. Pods
// in a change are shared: nobody may write to them. All other methods may be called from
// any goroutine.
package source
