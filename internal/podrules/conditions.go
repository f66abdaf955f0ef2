package podrules

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ownership is the table of the condition types that the node owns. The zero value is the kubelet's
// table (C1, C2, C3), which the functions of this package use; an agent with additional condition
// types declares them with [Owning] and uses the methods of the same names. An Ownership is
// immutable and may be used from any goroutine.
type Ownership struct {
	declared []v1.PodConditionType
}

// Owning returns the kubelet's table with additional types that this node owns: only the node
// writes them, keeps their transition times, and removes them from the API when it no longer
// reports them. Types in the kubelet's table, including shared types, are unchanged.
func Owning(types ...v1.PodConditionType) Ownership {
	var declared []v1.PodConditionType
	for _, t := range types {
		if traitsOf(t) == 0 && !slices.Contains(declared, t) {
			declared = append(declared, t)
		}
	}
	return Ownership{declared: declared}
}

// traits is what a condition type is to this node, none of it for a foreign type.
type traits uint8

const (
	owned  traits = 1 << iota // only the node writes it
	shared                    // the node and others write it
	timed                     // the node keeps its transition time
)

// ConditionType is a row of the kubelet's table.
type ConditionType struct {
	Type   v1.PodConditionType
	traits traits
}

// KubeletTypes is the kubelet's table, in the order in which statuses list the conditions. To add a
// type that nodes own, add a row here, and a generator in package podstatus.
var KubeletTypes = [...]ConditionType{
	{v1.PodResizePending, owned}, // these two have the times of the resize
	{v1.PodResizeInProgress, owned},
	{v1.DisruptionTarget, shared | timed},
	{v1.PodReadyToStartContainers, owned | timed},
	{v1.PodInitialized, owned | timed},
	{v1.PodReady, owned | timed},
	{v1.ContainersReady, owned | timed},
	{v1.PodScheduled, owned | timed},
	{v1.AllContainersRestarting, owned | timed},
}

func traitsOf(t v1.PodConditionType) traits {
	for i := range KubeletTypes {
		if KubeletTypes[i].Type == t {
			return KubeletTypes[i].traits
		}
	}
	return 0
}

func (o Ownership) traitsOf(t v1.PodConditionType) traits {
	known := traitsOf(t)
	if known == 0 && len(o.declared) > 0 && slices.Contains(o.declared, t) {
		return owned | timed
	}
	return known
}

// IsOwned reports whether only the node writes conditions of this type (C1). An owned
// condition that the node does not report is removed from the API.
func (o Ownership) IsOwned(t v1.PodConditionType) bool { return o.traitsOf(t)&owned != 0 }

// IsShared reports whether both the node and other writers write conditions of this type (C2).
// Types that are neither owned nor shared are foreign: the node never changes them.
func (o Ownership) IsShared(t v1.PodConditionType) bool { return o.traitsOf(t)&shared != 0 }

// IsForeign reports whether conditions of this type belong to other writers: the API's conditions
// are kept, and conditions in a report are not sent.
func (o Ownership) IsForeign(t v1.PodConditionType) bool { return o.traitsOf(t) == 0 }

// HasTransitionTime reports whether the node itself keeps the last transition time of
// conditions of this type, whatever time a reporter put in (C3).
func (o Ownership) HasTransitionTime(t v1.PodConditionType) bool { return o.traitsOf(t)&timed != 0 }

// IsOwned is [Ownership.IsOwned] of the kubelet's table.
func IsOwned(t v1.PodConditionType) bool { return Ownership{}.IsOwned(t) }

// IsShared is [Ownership.IsShared] of the kubelet's table.
func IsShared(t v1.PodConditionType) bool { return Ownership{}.IsShared(t) }

// HasTransitionTime is [Ownership.HasTransitionTime] of the kubelet's table.
func HasTransitionTime(t v1.PodConditionType) bool { return Ownership{}.HasTransitionTime(t) }

// FindCondition returns a pointer to the first condition of the type in conditions, or nil. The
// pointer points into the slice: a caller that does not own the slice must not write through it.
func FindCondition(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// IsTrue reports whether the condition exists and is True.
func IsTrue(conditions []v1.PodCondition, t v1.PodConditionType) bool {
	c := FindCondition(conditions, t)
	return c != nil && c.Status == v1.ConditionTrue
}

// TransitionTime returns when the condition took its status: the time in old if old has the
// condition with the same status and a time, otherwise now (C4), in whole seconds (N1). Old
// may be nil.
func TransitionTime(old *v1.PodStatus, c *v1.PodCondition, now time.Time) metav1.Time {
	if old != nil {
		if before := FindCondition(old.Conditions, c.Type); before != nil && before.Status == c.Status && !before.LastTransitionTime.IsZero() {
			return WholeSeconds(before.LastTransitionTime.Time)
		}
	}
	return WholeSeconds(now)
}

// WholeSeconds truncates a time to seconds, the precision of the API.
func WholeSeconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// publishedTime is the transition time with which a condition is written over the API's of
// the same type. The node's own time counts unless it is earlier than the API's: readers
// would see time run backwards (#119514). Then the transition is now if the status changes
// by this write, and the API's time stays if it does not. But an API's time that lies in the
// future, as after a clock was corrected, never stays: it would not be reached for long.
func publishedTime(api, own *v1.PodCondition, now time.Time) metav1.Time {
	future := api.LastTransitionTime.After(now)
	switch {
	case !own.LastTransitionTime.Before(&api.LastTransitionTime):
		return own.LastTransitionTime
	case own.Status == api.Status && !future:
		return api.LastTransitionTime
	case own.Status == api.Status && !own.LastTransitionTime.IsZero(), own.LastTransitionTime.After(now):
		return own.LastTransitionTime
	}
	return WholeSeconds(now)
}

// Reasons of the conditions that the node generates. People and programs match on them.
const (
	// ReasonUnknownContainerStatuses: no container was reported at all.
	ReasonUnknownContainerStatuses = "UnknownContainerStatuses"
	// ReasonPodCompleted: the pod has succeeded, so its containers are not ready.
	ReasonPodCompleted = "PodCompleted"
	// ReasonPodFailed: the pod has failed, whatever the statuses of its containers.
	ReasonPodFailed = "PodFailed"
	// ReasonContainersNotReady: a container is unready or unknown; the message lists which.
	ReasonContainersNotReady = "ContainersNotReady"
	// ReasonContainersNotInitialized: an init container is incomplete or unknown; the message lists which.
	ReasonContainersNotInitialized = "ContainersNotInitialized"
	// ReasonReadinessGatesNotReady: all containers are ready, but a readiness gate is not.
	ReasonReadinessGatesNotReady = "ReadinessGatesNotReady"
	// ReasonRestartAllContainersStarted: a container's exit restarts the whole pod.
	ReasonRestartAllContainersStarted = "RestartAllContainersStarted"
	// ReasonContainerStatusUnknown: the end of the container was not observed.
	ReasonContainerStatusUnknown = "ContainerStatusUnknown"
)

// Reasons of container states and of the status itself.
const (
	// ReasonContainerCreating: the container was not started yet.
	ReasonContainerCreating = "ContainerCreating"
	// ReasonPodInitializing: the container was not started yet, in a pod with init containers.
	ReasonPodInitializing = "PodInitializing"
	// ReasonCompleted: the container exited with 0.
	ReasonCompleted = "Completed"
	// ReasonError: the container exited with another code.
	ReasonError = "Error"
	// ReasonRestartingAllContainers: the container was stopped because a restart rule of another
	// container restarts the whole pod; it runs again whatever its own policy.
	ReasonRestartingAllContainers = "RestartingAllContainers"
	// ReasonDeadlineExceeded: the pod was active for longer than its spec allows.
	ReasonDeadlineExceeded = "DeadlineExceeded"
)

// Generated returns a condition that observes the pod's current generation (C15).
func Generated(pod *v1.Pod, t v1.PodConditionType, status v1.ConditionStatus) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: status, ObservedGeneration: pod.Generation}
}

// laterGeneration returns the generation with which a condition replaces the one before it: the pod object from
// which the condition was computed may be older than the pod that was reported last (G3). A condition without a
// generation stays without one.
func laterGeneration(c, before *v1.PodCondition) int64 {
	if c.ObservedGeneration == 0 || before == nil {
		return c.ObservedGeneration
	}
	return max(c.ObservedGeneration, before.ObservedGeneration)
}

// generatedFalse returns such a condition that is False for a reason.
func generatedFalse(pod *v1.Pod, t v1.PodConditionType, reason, message string) v1.PodCondition {
	c := Generated(pod, t, v1.ConditionFalse)
	c.Reason, c.Message = reason, message
	return c
}
