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

// Op is the kind of a change.
type Op string

const (
	// Set carries all pods of a source. It is the first change of each source and occurs
	// once.
	Set Op = "set"
	// Update carries pods that are new or changed.
	Update Op = "update"
	// Remove carries the last known objects of pods that are gone.
	Remove Op = "remove"
)

// A Change is one event of a source. Its pods are shared and must not be modified.
type Change struct {
	Origin Origin
	Op     Op
	Pods   []*v1.Pod
}

// Serial returns a handler for several sources that calls handle with one change at a time.
func Serial(handle func(Change)) func(Change) {
	var mu sync.Mutex // held while handle runs
	return func(c Change) {
		mu.Lock()
		defer mu.Unlock()
		handle(c)
	}
}
