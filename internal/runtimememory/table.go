package runtimememory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// Attempt is one attempt of a container, as a runtime has it.
type Attempt interface {
	comparable
	// View is the runtime's view of the container; part of the attempt, not a copy.
	View() *runtime.Container
}

// Pod is a pod with the attempts of its containers, in the order of their starts.
type Pod[A Attempt] struct {
	runtime.Pod
	Attempts []A
}

// Table is the pods of a runtime. Its caller has a lock over it.
type Table[A Attempt] struct {
	// Runtime begins each error.
	Runtime string
	Pods    map[types.UID]*Pod[A]
}

// NewTable returns a table without pods.
func NewTable[A Attempt](runtimeName string) Table[A] {
	return Table[A]{Runtime: runtimeName, Pods: map[types.UID]*Pod[A]{}}
}

// Pod returns [runtime.ErrNotFound] for an unknown pod.
func (t Table[A]) Pod(uid types.UID) (*Pod[A], error) {
	p, known := t.Pods[uid]
	if !known {
		return nil, fmt.Errorf("%s: pod %s: %w", t.Runtime, uid, runtime.ErrNotFound)
	}
	return p, nil
}

// Find returns the attempt with an ID, or [runtime.ErrNotFound].
func (t Table[A]) Find(id string) (found A, err error) {
	for _, p := range t.Pods {
		for _, a := range p.Attempts {
			if a.View().ID == id {
				return a, nil
			}
		}
	}
	return found, fmt.Errorf("%s: container %s: %w", t.Runtime, id, runtime.ErrNotFound)
}

// MayStart returns the pod in which an attempt of a container may be started now.
func (t Table[A]) MayStart(uid types.UID, name string, attempt int) (*Pod[A], error) {
	p, err := t.Pod(uid)
	if err != nil {
		return nil, err
	}
	for _, a := range p.Attempts {
		if c := a.View(); c.Name == name && (c.State != runtime.Exited || c.Attempt >= attempt) {
			return nil, fmt.Errorf("%s: container %s: attempt %d is %s, cannot start attempt %d: %w",
				t.Runtime, name, c.Attempt, c.State, attempt, runtime.ErrContainerRunning)
		}
	}
	return p, nil
}

// Remove forgets a pod, which must not have a running container. An unknown pod is no error.
func (t Table[A]) Remove(uid types.UID) (removed bool, err error) {
	p, known := t.Pods[uid]
	if !known {
		return false, nil
	}
	if err := t.MustHaveEnded(p); err != nil {
		return false, err
	}
	delete(t.Pods, uid)
	return true, nil
}

// MustHaveEnded returns an error while a container of the pod has not exited.
func (t Table[A]) MustHaveEnded(p *Pod[A]) error {
	for _, a := range p.Attempts {
		if c := a.View(); c.State != runtime.Exited {
			return fmt.Errorf("%s: pod %s: container %s: %w", t.Runtime, p.Manifest.UID, c.Name, runtime.ErrContainerRunning)
		}
	}
	return nil
}

// List returns all pods in order of their UIDs, for the caller to keep.
func (t Table[A]) List() []runtime.Pod {
	var all []runtime.Pod
	for _, uid := range slices.Sorted(maps.Keys(t.Pods)) {
		all = append(all, t.Pods[uid].Snapshot())
	}
	return all
}

// Snapshot returns the present state of the pod, for the caller to keep.
func (p *Pod[A]) Snapshot() runtime.Pod {
	s := p.Pod
	s.Manifest, s.IPs = p.Manifest.DeepCopy(), slices.Clone(p.IPs)
	for _, a := range p.Attempts {
		s.Containers = append(s.Containers, *a.View())
	}
	slices.SortStableFunc(s.Containers, func(a, b runtime.Container) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Attempt, a.Attempt))
	})
	return s
}
