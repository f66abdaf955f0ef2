package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsZero reports whether no resize is pending or in progress.
func (r ResizeConditions) IsZero() bool { return r.Pending == nil && r.InProgress == nil }

// SameButProbed reports whether two values differ at most in LastProbeTime, which need not survive
// a restart.
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

// SetPending sets the condition of a pending resize. Any reason but Infeasible becomes Deferred; message
// and generation are replaced, and the transition time moves only with the reason. SetPending reports whether
// the reason or the generation changed: a new message alone causes no event (Z1).
func (r ResizeConditions) SetPending(reason, message string, generation int64, now time.Time) (ResizeConditions, bool) {
	if reason != v1.PodReasonInfeasible {
		reason = v1.PodReasonDeferred
	}
	old := r.Pending
	r.Pending = resizeCondition(v1.PodResizePending, old, reason, message, generation, now)
	return r, old == nil || old.Reason != reason || old.ObservedGeneration != generation
}

// SetInProgress sets the condition of a resize in progress. An existing condition keeps its
// generation until it is cleared, and empty reasons and messages keep the previous values.
// SetInProgress returns the generation of the condition, and whether anything but times changed (Z2).
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

// ClearInProgress removes the in-progress condition. ClearInProgress returns the generation of the removed
// condition, and whether there was one (Z3).
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

// ResizeConditionsOf extracts the two conditions from a previously reported status, for instance by
// an earlier run of the node. Times are kept, so that a resize does not look newer after a restart;
// the kubelet resets them (Z5). Only conditions that are True count: "no resize" is expressed by
// absence (Z4).
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

// AllocationOf returns the resources that a node allocates to a pod at admission: the resources of
// every container of the spec, including init containers, and the pod-level resources (A9). The
// result shares no memory with the pod.
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

// Allocation has the resources that a node has allocated to a pod at admission or by a resize. They
// differ from the spec while a resize is pending.
type Allocation struct {
	// Containers maps container names to their resources.
	Containers map[string]v1.ResourceRequirements
	// PodLevel holds the pod's own resources, nil if the pod has none.
	PodLevel *v1.ResourceRequirements
}

// Final is the last status of a pod, kept until the API server has it.
type Final struct {
	Namespace string
	Name      string
	// Version is the manager's version of the status.
	Version uint64
	// Finished means that the pod has terminated and may be deleted from the API.
	Finished bool
	// Vanished means that a container that was reported running is missing from the status, so that
	// its end is not proven.
	Vanished bool
	Status   v1.PodStatus
}

// ResizeConditions are the two conditions of a resize. Nil means that the condition is absent.
// Values are immutable: the methods return new values.
type ResizeConditions struct {
	Pending    *v1.PodCondition
	InProgress *v1.PodCondition
}
