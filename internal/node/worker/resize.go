package worker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// A resize is decided on like an admission, one at a time, and carried out by the worker of the
// pod. A resize that does not fit is decided on again whenever room appears, in the order of the
// kubelet (A11).

const messageNoLimits = "these limits cannot be changed while the pod runs on this node"

// decideResizes decides on all requested resizes.
func (w *Workers) decideResizes() {
	w.admitting.Lock()
	defer w.admitting.Unlock()
	for _, p := range w.pendingResizes() {
		w.decideResize(p)
	}
}

// pending is a resize to decide on.
type pending struct {
	p       *worker
	desired *v1.Pod
	held    *v1.Pod
	since   time.Time
}

// pendingResizes returns the requested resizes in the order in which to grant them. pendingResizes returns none
// before all sources have synced: pods that count may be missing.
func (w *Workers) pendingResizes() []pending {
	w.mu.Lock()
	var all []pending
	for _, p := range w.pods {
		if w.ready && p.inbox.resizing && p.inbox.admitted && p.inbox.stage == syncing && !p.inbox.gone {
			all = append(all, pending{p: p, desired: p.inbox.pod, held: withAllocation(p.inbox.pod, p.inbox.allocated)})
		}
	}
	w.mu.Unlock()
	for i := range all {
		for _, c := range w.opts.Status.GetPodResizeConditions(all[i].p.uid) {
			if c.Type == v1.PodResizePending {
				all[i].since = c.LastTransitionTime.Time
			}
		}
	}
	slices.SortStableFunc(all, comparePending)
	return all
}

// comparePending orders resizes: first resizes that raise no request, then by priority, then
// guaranteed pods, then by the time of waiting, the longest first.
func comparePending(a, b pending) int {
	return cmp.Or(
		compareBool(raises(b.held, b.desired), raises(a.held, a.desired)),
		cmp.Compare(priorityOf(b.desired), priorityOf(a.desired)),
		compareBool(podstatus.QOSClass(a.desired) == v1.PodQOSGuaranteed, podstatus.QOSClass(b.desired) == v1.PodQOSGuaranteed),
		compareSince(a.since, b.since),
		cmp.Compare(a.p.order, b.p.order),
	)
}

// compareBool puts true first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// compareSince puts the longest wait first; a zero time begins to wait now.
func compareSince(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		return compareBool(b.IsZero(), a.IsZero())
	}
	return a.Compare(b)
}

// raises reports whether a resize asks for more of anything.
func raises(held, desired *v1.Pod) bool {
	before := fit.Requests(held)
	for name, wanted := range fit.Requests(desired) {
		if have := before[name]; wanted.Cmp(have) > 0 {
			return true
		}
	}
	return false
}

func priorityOf(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// decideResize grants a resize or reports why it has to wait. The caller holds admitting.
func (w *Workers) decideResize(r pending) {
	if refusal := w.refuseResize(r); refusal != nil {
		before := w.opts.Status.GetPodResizeConditions(r.p.uid)
		if w.opts.Status.SetPodResizePendingCondition(r.p.uid, refusal.Reason, refusal.Message, r.desired.Generation) {
			w.opts.Recorder.Event(r.desired, "", v1.EventTypeWarning, "Resize"+refusal.Reason,
				describeResize("Pod resize "+refusal.Reason, r.desired, r.desired.Generation, refusal.Message))
		}
		if !equality.Semantic.DeepEqual(before, w.opts.Status.GetPodResizeConditions(r.p.uid)) {
			r.p.poke() // to report it
		}
		return
	}
	// First in the journal: an allocation that a crash undoes would be none.
	if err := w.opts.Status.SetPodAllocation(r.desired); err != nil {
		r.p.log.Error("recording the allocation failed, the resize waits", "err", err)
		return
	}
	// The allocation before the condition: a turn of the pod that sees the condition also sees
	// what there is to do, and does not take the resize for done.
	granted := podstatus.AllocationOf(r.desired)
	w.mu.Lock()
	r.p.inbox.allocated, r.p.inbox.resizing = &granted, false
	w.mu.Unlock()
	w.opts.Status.ClearPodResizePendingCondition(r.p.uid)
	w.opts.Status.ClearPodResizeInProgressCondition(r.p.uid)
	w.opts.Status.SetPodResizeInProgressCondition(r.p.uid, "", "", r.desired.Generation)
	w.opts.Recorder.Event(r.desired, "", v1.EventTypeNormal, "ResizeStarted",
		describeResize("Pod resize started", r.desired, r.desired.Generation, ""))
	r.p.poke()
}

// wakeRoom has those look again that wait for room. The caller holds mu.
func (w *Workers) wakeRoom() {
	for _, p := range w.pods {
		if p.inbox.resizing || p.inbox.wantsRoom {
			p.poke()
		}
	}
}

// refuseResize returns why a resize cannot be granted now, nil if it can: Infeasible if the
// node could never take the pod, else Deferred.
func (w *Workers) refuseResize(r pending) *fit.Rejection {
	_, can := w.opts.Runtime.(runtime.Resizer)
	if !can && changesLimits(r.held, r.desired) || !equality.Semantic.DeepEqual(podLimits(r.held), podLimits(r.desired)) {
		return &fit.Rejection{Reason: v1.PodReasonInfeasible, Message: messageNoLimits}
	}
	if found := w.opts.Runtime.Check(r.desired); len(found) > len(w.opts.Runtime.Check(r.held)) {
		return &fit.Rejection{Reason: v1.PodReasonInfeasible, Message: runtime.Describe(found)}
	}
	if alone := w.opts.Admit(r.desired, nil); alone != nil && alone.Shortage != nil {
		short := alone.Shortage
		return &fit.Rejection{Reason: v1.PodReasonInfeasible, Message: fmt.Sprintf(
			"Node didn't have enough capacity: %s, requested: %d, capacity: %d", short.Resource, short.Requested, short.Capacity)}
	}
	others, _ := w.active(r.p)
	if beside := w.opts.Admit(r.desired, others); beside != nil {
		return &fit.Rejection{Reason: v1.PodReasonDeferred, Message: beside.Message}
	}
	return nil
}

func changesLimits(held, desired *v1.Pod) bool {
	before, after := podstatus.AllocationOf(held), podstatus.AllocationOf(desired)
	for name, resources := range after.Containers {
		if !equality.Semantic.DeepEqual(before.Containers[name].Limits, resources.Limits) {
			return true
		}
	}
	return false
}

// podLimits are the limits of the pod as a whole, which no runtime can change.
func podLimits(pod *v1.Pod) v1.ResourceList {
	if pod.Spec.Resources == nil {
		return nil
	}
	return pod.Spec.Resources.Limits
}

// describeResize is the message of an event about a resize, in the form of the kubelet.
func describeResize(what string, pod *v1.Pod, generation int64, problem string) string {
	type share struct {
		Name      string                  `json:"name"`
		Resources v1.ResourceRequirements `json:"resources,omitempty"`
	}
	summary := struct {
		InitContainers []share `json:"initContainers,omitempty"`
		Containers     []share `json:"containers"`
		Generation     int64   `json:"generation"`
		Error          string  `json:"error,omitempty"`
	}{Generation: generation, Error: problem}
	for _, c := range pod.Spec.InitContainers {
		summary.InitContainers = append(summary.InitContainers, share{c.Name, c.Resources})
	}
	for _, c := range pod.Spec.Containers {
		summary.Containers = append(summary.Containers, share{c.Name, c.Resources})
	}
	text, err := json.Marshal(summary)
	if err != nil {
		return what
	}
	return what + ": " + string(text)
}
