package criside

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
)

// state is what a runtime has, by ID.
type state struct {
	sandboxes  map[string]audit.Sandbox
	containers map[string]audit.Container
}

func newState() state {
	return state{map[string]audit.Sandbox{}, map[string]audit.Container{}}
}

func (s state) clone() state {
	if s.sandboxes == nil {
		return newState()
	}
	return state{maps.Clone(s.sandboxes), maps.Clone(s.containers)}
}

// since returns the pods that have changed, and keeps when that which has not was first seen.
func (s state) since(before state) map[types.UID]bool {
	changed := map[types.UID]bool{}
	for id, now := range s.sandboxes {
		was, ok := before.sandboxes[id]
		if ok && sameSandbox(was, now) {
			s.sandboxes[id] = was
		} else {
			changed[now.UID] = true
		}
	}
	for id, was := range before.sandboxes {
		if _, ok := s.sandboxes[id]; !ok {
			changed[was.UID] = true
		}
	}
	for id, now := range s.containers {
		was, ok := before.containers[id]
		if ok && sameContainer(was, now) {
			s.containers[id] = was
		} else {
			changed[now.UID] = true
		}
	}
	for id, was := range before.containers {
		if _, ok := s.containers[id]; !ok {
			changed[was.UID] = true
		}
	}
	return changed
}

func sameSandbox(a, b audit.Sandbox) bool {
	return a.UID == b.UID && a.Namespace == b.Namespace && a.Name == b.Name && a.Attempt == b.Attempt &&
		a.Ready == b.Ready && a.Created.Equal(b.Created) && slices.Equal(a.IPs, b.IPs)
}

func sameContainer(a, b audit.Container) bool {
	a.At = b.At
	return a == b
}

// news is what events have brought: nil if it is gone.
type news struct {
	sandboxes  map[string]*audit.Sandbox
	containers map[string]*audit.Container
}

func newNews() news {
	return news{map[string]*audit.Sandbox{}, map[string]*audit.Container{}}
}

// apply changes a state by the news. Events wait in a queue, so that one may be older than the list that the state is of: it must
// not take a container back to a state that is over.
func (n news) apply(s state) {
	for id, sandbox := range n.sandboxes {
		if sandbox == nil {
			delete(s.sandboxes, id)
		} else {
			s.sandboxes[id] = *sandbox
		}
	}
	for id, container := range n.containers {
		if container == nil {
			delete(s.containers, id)
		} else if known, ok := s.containers[id]; !ok || !isOver(container.State, known.State) {
			s.containers[id] = *container
		}
	}
}

// isOver reports whether a container that is in a state now has left another one for good: it is created, runs and exits once.
func isOver(before, now audit.ContainerState) bool {
	switch before {
	case audit.ContainerCreated:
		return now == audit.ContainerRunning || now == audit.ContainerExited
	case audit.ContainerRunning:
		return now == audit.ContainerExited
	}
	return false
}

// add makes later news part of these.
func (n news) add(later news) {
	maps.Copy(n.sandboxes, later.sandboxes)
	maps.Copy(n.containers, later.containers)
}
