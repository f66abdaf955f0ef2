package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsZero reports whether no resize is pending or in progress.
func (r ResizeConditions) IsZero() bool { return r.Pending == nil && r.InProgress == nil }

// SameButProbed reports whether two values differ in nothing but the time at which they were
// last set, which is not worth remembering across a restart.
func (r ResizeConditions) SameButProbed(other ResizeConditions) bool {
	return sameButProbed(r.Pending, other.Pending) && sameButProbed(r.InProgress, other.InProgress)
}

func sameButProbed(a, b *v1.PodCondition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.Message == b.Message && a.ObservedGeneration == b.ObservedGeneration &&
		a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// SetPending sets the condition of a resize that waits. Any reason but Infeasible becomes Deferred; message
// and generation are replaced, and the transition time moves only with the reason. It
// reports whether reason or generation are new: a new message alone is not worth an event (Z1).
func (r ResizeConditions) SetPending(reason, message string, generation int64, now time.Time) (ResizeConditions, bool) {
	if reason != v1.PodReasonInfeasible {
		reason = v1.PodReasonDeferred
	}
	old := r.Pending
	r.Pending = resizeCondition(v1.PodResizePending, old, reason, message, generation, now)
	return r, old == nil || old.Reason != reason || old.ObservedGeneration != generation
}

// SetInProgress sets the condition of a resize that is carried out. A condition that exists keeps its
// generation until it is cleared, and an empty reason and message keep the old ones. It
// returns the generation in force, and whether anything but times changed (Z2).
func (r ResizeConditions) SetInProgress(reason, message string, generation int64, now time.Time) (ResizeConditions, int64, bool) {
	old := r.InProgress
	if old != nil {
		generation = old.ObservedGeneration
		if reason == "" && message == "" {
			reason, message = old.Reason, old.Message
		}
	}
	r.InProgress = resizeCondition(v1.PodResizeInProgress, old, reason, message, generation, now)
	return r, generation, old == nil || old.Reason != reason || old.Message != message
}

// ClearPending removes the pending condition, and reports whether there was one (Z3).
func (r ResizeConditions) ClearPending() (ResizeConditions, bool) {
	existed := r.Pending != nil
	r.Pending = nil
	return r, existed
}

// ClearInProgress removes the in-progress condition. It returns the generation of the
// one that was, and whether there was one (Z3).
func (r ResizeConditions) ClearInProgress() (ResizeConditions, int64, bool) {
	if r.InProgress == nil {
		return r, 0, false
	}
	generation := r.InProgress.ObservedGeneration
	r.InProgress = nil
	return r, generation, true
}

// List returns copies of the conditions that are set: Pending, then InProgress (Z4, Z7).
func (r ResizeConditions) List() []v1.PodCondition {
	var list []v1.PodCondition
	if r.Pending != nil {
		list = append(list, *r.Pending)
	}
	if r.InProgress != nil {
		list = append(list, *r.InProgress)
	}
	return list
}

// ResizeConditionsOf reads the two conditions out of a status that was reported before, for
// instance by an earlier run of the node. Times are kept, so that a restart does not make a
// resize look younger than it is; the kubelet starts them again (Z5). Only conditions that
// are True count: absence is the one way to say "not so" (Z4).
func ResizeConditionsOf(conditions []v1.PodCondition) ResizeConditions {
	var r ResizeConditions
	for i := range conditions {
		c := conditions[i]
		if c.Status != v1.ConditionTrue {
			continue
		}
		switch c.Type {
		case v1.PodResizePending:
			r.Pending = &c
		case v1.PodResizeInProgress:
			r.InProgress = &c
		}
	}
	return r
}

// resizeCondition returns a new condition; old is left as it is, since others may hold it
// (Z7). Its times are exact, so that resizes can be ordered by them; like all others they are
// cut to whole seconds in a status (N1).
func resizeCondition(t v1.PodConditionType, old *v1.PodCondition, reason, message string, generation int64, now time.Time) *v1.PodCondition {
	c := &v1.PodCondition{
		Type:               t,
		Status:             v1.ConditionTrue,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: generation,
		LastProbeTime:      metav1.NewTime(now),
		LastTransitionTime: metav1.NewTime(now),
	}
	if old != nil && old.Reason == reason {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}

// AllocationOf returns what a node sets aside for a pod when it admits it: the resources
// of every container of the spec, init containers included, and those of the pod itself
// (A9). The result shares nothing with the pod.
func AllocationOf(pod *v1.Pod) Allocation {
	allocation := Allocation{Containers: make(map[string]v1.ResourceRequirements, len(pod.Spec.Containers)+len(pod.Spec.InitContainers))}
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			allocation.Containers[containers[i].Name] = *containers[i].Resources.DeepCopy()
		}
	}
	allocation.PodLevel = pod.Spec.Resources.DeepCopy()
	return allocation
}

// Allocation is what a node has set aside for a pod: the resources that were admitted,
// which differ from those in the spec while a resize is pending.
type Allocation struct {
	// Containers maps container names to their resources.
	Containers map[string]v1.ResourceRequirements
	// PodLevel holds the pod's own resources, nil if the pod has none.
	PodLevel *v1.ResourceRequirements
}

// Final is a status after which the pod changes no more, kept until the API server has it.
type Final struct {
	Namespace string
	Name      string
	// Version is the manager's version of the status.
	Version uint64
	// Finished means that the pod has terminated and may be deleted from the API.
	Finished bool
	// Vanished means that a container which was reported running is not in the status, so that its
	// end is not proven.
	Vanished bool
	Status   v1.PodStatus
}

// ResizeConditions are the two conditions of a resize. Nil means that
// the condition is absent. Values are immutable: the methods return new ones.
type ResizeConditions struct {
	Pending    *v1.PodCondition
	InProgress *v1.PodCondition
}
