package virtualkubelet

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/instant"
	"github.com/statusd/statusd/podstatus"
)

// pod is the state of the pods of one name. Its fields except reporting are guarded by the lock of the kubelet.
type pod struct {
	name types.NamespacedName

	// api is the pod in the API, or nil.
	api *v1.Pod
	// held is the pod that the provider is known to have: the pod passed to CreatePod or found at the start, or
	// nil. It may differ from api.
	held *v1.Pod
	// ended: held has ended, by its status or because it is lost.
	ended bool
	// adopted: held was found at the provider, and its status was not read yet.
	adopted bool
	// finished: the manager has recorded that no container of held runs.
	finished bool
	// deleted: DeletePod has succeeded for held, the last time at deletedAt.
	deleted   bool
	deletedAt time.Time
	// given is the pod last passed to the provider, for comparison.
	given *v1.Pod
	// missing is since when the provider does not find held, or zero.
	missing time.Time
	// asked is when the status of held was last read.
	asked time.Time
	// attempts counts the failures of the current step, notBefore is when it is tried again.
	attempts  int
	notBefore time.Time
	// updates counts the failures of UpdatePod, updateAfter is when it is called again. Meanwhile the other steps go on.
	updates     int
	updateAfter time.Time
	// hinted: a notification was about this name and another UID, so the status is to be read soon.
	hinted bool

	active bool // a goroutine takes turns
	again  bool // something has changed since its turn began
	timer  *time.Timer

	// newest is the last unprocessed notification, notified counts the notifications.
	newest   *v1.Pod
	notified int
	noted    map[Kind]bool // kinds of repairs that were logged

	// reporting is held while a report is repaired and stored.
	reporting sync.Mutex
}

// step is the next step for a pod.
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

// next decides on the next step. Status is the newest status of the API's pod, poll how often the status is read. next
// is a pure function.
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
	}
	updates := p.given == nil || changed(p.given, p.api)
	due := p.asked.Add(poll)
	switch {
	case updates && !now.Before(p.updateAfter):
		return update, 0
	case p.adopted, !now.Before(due):
		return ask, 0
	case updates:
		due = instant.Earlier(due, p.updateAfter)
	}
	return idle, due.Sub(now)
}

// changed reports whether a pod differs from the pod given to the provider, in fields that matter
// to the provider.
func changed(given, pod *v1.Pod) bool {
	return given != pod && (!equality.Semantic.DeepEqual(given.Spec, pod.Spec) ||
		!equality.Semantic.DeepEqual(given.Labels, pod.Labels) || !equality.Semantic.DeepEqual(given.Annotations, pod.Annotations))
}

// isSame reports whether a pod of the provider is the API's pod of that name, whose newest status is given, and not an earlier pod. A
// provider may keep no UIDs, or have UIDs of its own, such as a cluster that runs the pods.
func isSame(found, api *v1.Pod, status *v1.PodStatus) bool {
	if found.UID == api.UID || ran(status) { // the provider has one pod of a name, and has run this one
		return true
	}
	began := beginning(found)
	if found.UID == "" {
		return began.IsZero() || !began.Before(&api.CreationTimestamp)
	}
	return api.CreationTimestamp.Before(&began)
}

// beginning is when a pod of a provider was created or started, or zero if unknown.
func beginning(found *v1.Pod) metav1.Time {
	began := found.CreationTimestamp
	if began.IsZero() && found.Status.StartTime != nil {
		began = *found.Status.StartTime
	}
	for i := range found.Status.ContainerStatuses {
		if running := found.Status.ContainerStatuses[i].State.Running; began.IsZero() && running != nil {
			began = running.StartedAt
		}
	}
	return began
}

// allEnded reports whether no container of a status runs or waits to start.
func allEnded(status *v1.PodStatus) bool {
	for i := range status.ContainerStatuses {
		if status.ContainerStatuses[i].State.Terminated == nil {
			return false
		}
	}
	return len(status.ContainerStatuses) > 0
}
