package worker

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/podstatus"
)

// admit decides whether the pod may run. A pod that an earlier process has started was admitted by
// it. Features that the runtime lacks are no reason to reject a pod: see supported.
//
// A critical pod that has to wait for others to leave is neither admitted nor rejected.
func (w *Workers) admit(p *worker, pod *v1.Pod) (r *fit.Rejection, wait bool) {
	w.admitting.Lock()
	defer w.admitting.Unlock()
	active, left := w.active(p)
	if left == nil {
		if r := w.opts.Admit(pod, active); r != nil {
			if w.preempt(pod, active, r) {
				w.mu.Lock()
				defer w.mu.Unlock()
				p.inbox.wantsRoom = true
				return nil, true
			}
			return r, false
		}
		w.opts.Observer.Admitted(pod, nil, time.Now())
	}
	allocated := w.allocated(p.uid, left)
	if allocated == nil {
		own := podstatus.AllocationOf(pod)
		allocated = &own
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p.inbox.admitted, p.inbox.allocated, p.inbox.wantsRoom = true, allocated, false
	return nil, false
}

// active are the other pods that take room on the node, with the resources that they were
// allocated, and the pod itself as an earlier process has left it, if one has.
func (w *Workers) active(p *worker) (others []*v1.Pod, left *v1.Pod) {
	found, left := w.candidates(p)
	for _, c := range found {
		if c.idle {
			if status, known := w.opts.Status.GetPodStatus(c.pod.UID); known && podstatus.IsTerminal(status.Phase) {
				continue
			}
		}
		if c.allocated == nil {
			c.allocated = w.allocated(c.pod.UID, c.pod)
		}
		others = append(others, withAllocation(c.pod, c.allocated))
	}
	return others, left
}

// candidate is a pod that may take room.
type candidate struct {
	pod       *v1.Pod
	allocated *podstatus.Allocation // nil: the journal knows
	idle      bool                  // no container runs: the pod's status decides
}

// candidates are the other pods that may take room, and the pod itself as an earlier
// process has left it. Status manager and journal are not asked under the lock.
func (w *Workers) candidates(p *worker) (found []candidate, left *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, left := range w.inherited {
		other := w.pods[uid]
		if uid == p.uid || other != nil && (other.inbox.admitted || other.inbox.stage >= stopped) {
			continue // the pod itself, or a pod that is handled below
		}
		switch {
		case left.alive:
			found = append(found, candidate{pod: left.pod})
		case other != nil && left.mayRunAgain(other.inbox):
			found = append(found, candidate{pod: left.pod, idle: true})
		}
	}
	for uid, other := range w.pods {
		if left := w.inherited[uid]; left.over && !left.alive {
			continue // admitted by its first turn, which is about to end it
		}
		// What was deleted by force takes no room, as with a kubelet: the scheduler has given it away, and a pod that is rejected has failed for good.
		if other != p && other.inbox.admitted && other.inbox.stage < stopped && !other.inbox.gone {
			found = append(found, candidate{pod: other.inbox.pod, allocated: other.inbox.allocated})
		}
	}
	return found, w.inherited[p.uid].pod
}
