// Package source provides the pods that belong on this node: pods that the API server has bound to
// it, and pods from a directory of manifests.
//
// All sources work the same way:
//
//	API server  ──list, watch──►  API        ──┐
//	                                           ├──► handle(Change)
//	directory   ──read, notify─►  Manifests  ──┘
//
// The first change of a source is [Set], with all of its pods; Set occurs once. After Set a source
// delivers differences only: [Update] for new or changed pods, [Remove] for deleted pods, each with
// the last known object. A consumer that acts on a source's pods only after its Set never starts or
// stops a pod because of an incomplete list. A lost watch, an expired resource version or a relist
// results in Updates and Removes, never in a second Set.
//
// # Static pods
//
// Package manifest decodes the files. The UID of a static pod is made from its content, so an edit
// makes another pod: Remove of the old UID, then Update with the new one. Removing a file removes
// its pods. A file that becomes invalid stops nothing: the pods of its last valid content keep
// running until the file is valid again or removed. The last valid content is kept in memory only:
// a file that is invalid when statusd starts defines no pods, as with the kubelet.
// [Manifests.Problems] returns the problems with file, line and field.
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
