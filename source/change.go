package source

import (
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// Origin is where a pod comes from: a value of [podstatus.SourceAnnotation].
type Origin string

const (
	// FromAPI marks pods that the API server has bound to this node, mirror pods included.
	FromAPI Origin = podstatus.SourceAPI
	// FromFile marks static pods, defined by a manifest on this node.
	FromFile Origin = podstatus.SourceFile
)

// Op says what a change means.
type Op string

const (
	// Set carries all pods of a source. It is the first change of each source and never
	// comes again.
	Set Op = "set"
	// Update carries pods that are new or differ from what was said before.
	Update Op = "update"
	// Remove carries the last known objects of pods that are gone.
	Remove Op = "remove"
)

// A Change is one statement of a source. Its pods are shared and must not be written to.
type Change struct {
	Origin Origin
	Op     Op
	Pods   []*v1.Pod
}

// Serial merges the changes of several sources: whatever they call at the same time,
// handle sees one after the other.
func Serial(handle func(Change)) func(Change) {
	var mu sync.Mutex // held while handle runs
	return func(c Change) {
		mu.Lock()
		defer mu.Unlock()
		handle(c)
	}
}
