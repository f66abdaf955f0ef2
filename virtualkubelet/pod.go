package virtualkubelet

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// pod is what is known of the pods of one name. Its fields but reporting are guarded by the lock of the kubelet.
type pod struct {
	name types.NamespacedName

	// api is the pod as the API has it, nil if it has none.
	api *v1.Pod
	// held is the pod that the provider has, as far as is known: the one that it was given, or that it had at the
	// start; nil if it has none. It may be another one than api.
	held *v1.Pod
	// ended: held has ended, by its status or because it is lost.
	ended bool
	// adopted: held was found at the provider, and its status was not asked for yet.
	adopted bool
	// finished: the manager knows that nothing of held runs.
	finished bool
	// deleted: DeletePod has succeeded for held, the last time at deletedAt.
	deleted   bool
	deletedAt time.Time
	// given is what the provider was given last, for comparison.
	given *v1.Pod
	// missing is since when the provider does not find held, zero if it does.
	missing time.Time
	// asked is when the status of held was last asked for.
	asked time.Time
	// attempts counts the failures of the current step, notBefore is when it is tried again.
	attempts  int
	notBefore time.Time

	active bool // a goroutine takes turns
	again  bool // something has changed since its turn began
	timer  *time.Timer

	// newest is the last notification that was not looked at, notified counts them.
	newest   *v1.Pod
	notified int
	noted    map[Kind]bool // kinds of repairs that were logged

	// reporting is held while a report is repaired and stored.
	reporting sync.Mutex
}

// step is what is to be done next for a pod.
type step int

const (
	idle step = iota
	forget
	removeHeld  // the provider has a pod that the API does not want
	endUnheld   // the API wants the pod gone, and the provider does not have it
	declareLost // the pod has run, and the provider does not have it
	create
	remove // the API wants the pod gone
	update
	ask
)

// next decides on the next step. Status is the newest one of the API's pod, poll how often it is asked for. It is pure.
func (p *pod) next(status *v1.PodStatus, poll time.Duration, now time.Time) (todo step, wait time.Duration) {
	if p.attempts > 0 && now.Before(p.notBefore) {
		return idle, p.notBefore.Sub(now)
	}
	switch {
	case p.held != nil && (p.api == nil || p.api.UID != p.held.UID):
		return removeHeld, 0
	case p.api == nil:
		return forget, 0
	case p.held == nil && podstatus.IsTerminal(status.Phase) && p.api.DeletionTimestamp == nil:
		return idle, 0
	case p.held == nil && p.api.DeletionTimestamp != nil:
		return endUnheld, 0
	case p.held == nil && ran(status):
		return declareLost, 0
	case p.held == nil:
		return create, 0
	case p.ended && p.api.DeletionTimestamp != nil && !p.finished:
		return endUnheld, 0
	case p.ended:
		return idle, 0
	case p.api.DeletionTimestamp != nil:
		return remove, 0
	case p.given == nil || changed(p.given, p.api):
		return update, 0
	case p.adopted:
		return ask, 0
	}
	if due := p.asked.Add(poll); now.Before(due) {
		return idle, due.Sub(now)
	}
	return ask, 0
}

// changed reports whether a pod differs from what the provider was given in what it should know of.
func changed(given, pod *v1.Pod) bool {
	return !equality.Semantic.DeepEqual(given.Spec, pod.Spec) ||
		!equality.Semantic.DeepEqual(given.Labels, pod.Labels) || !equality.Semantic.DeepEqual(given.Annotations, pod.Annotations)
}

// startedBefore reports whether a pod of a provider that keeps no UIDs began before the API's pod of its name existed,
// so that it must be an earlier one.
func startedBefore(found, api *v1.Pod) bool {
	began := found.CreationTimestamp
	if began.IsZero() && found.Status.StartTime != nil {
		began = *found.Status.StartTime
	}
	for i := range found.Status.ContainerStatuses {
		if running := found.Status.ContainerStatuses[i].State.Running; began.IsZero() && running != nil {
			began = running.StartedAt
		}
	}
	return !began.IsZero() && began.Before(&api.CreationTimestamp)
}

// allEnded reports whether no container of a status runs or is about to.
func allEnded(status *v1.PodStatus) bool {
	for i := range status.ContainerStatuses {
		if status.ContainerStatuses[i].State.Terminated == nil {
			return false
		}
	}
	return len(status.ContainerStatuses) > 0
}
