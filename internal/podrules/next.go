package podrules

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Next returns the status to store when incoming is reported over old (U7): transition times relative to
// old (C3, C4), the first start time (U8), an observed generation that never decreases (G3), the last of
// two conditions of one type (E7), and a phase that stays if it was terminal (see [LeavesEnd]), all
// normalized. A caller that reports for a generation of the pod (U2) sets incoming's observed generation
// first. The result shares no memory with incoming.
func Next(pod *v1.Pod, old, incoming *v1.PodStatus, now time.Time) v1.PodStatus {
	return Ownership{}.Next(pod, old, incoming, now)
}

// Next is [Next] with this table.
func (o Ownership) Next(pod *v1.Pod, old, incoming *v1.PodStatus, now time.Time) v1.PodStatus {
	var next v1.PodStatus
	incoming.DeepCopyInto(&next)
	next.Conditions = lastOfEachType(next.Conditions)
	for i := range next.Conditions {
		if c := &next.Conditions[i]; o.HasTransitionTime(c.Type) {
			c.LastTransitionTime = TransitionTime(old, c, now)
		}
	}
	next.StartTime = nextStartTime(old, incoming, now)
	next.ObservedGeneration = max(old.ObservedGeneration, incoming.ObservedGeneration)
	if LeavesEnd(old, incoming) {
		next.Phase, next.Reason, next.Message = old.Phase, old.Reason, old.Message
	}
	normalize(pod, &next)
	return next
}

// lastOfEachType drops, in place, the conditions after which there is another of their type. If
// both were kept, a probe result would change the first, and the last would be sent.
func lastOfEachType(list []v1.PodCondition) []v1.PodCondition {
	kept := list[:0]
	for i := range list {
		if LastOfType(list[i+1:], list[i].Type) == nil {
			kept = append(kept, list[i])
		}
	}
	clear(list[len(kept):])
	return kept
}

// nextStartTime is old's if it has one, else incoming's, else now (U8). It is a copy: a
// start time that several statuses share was a data race upstream (#136205).
func nextStartTime(old, incoming *v1.PodStatus, now time.Time) *metav1.Time {
	switch {
	case !old.StartTime.IsZero():
		return &metav1.Time{Time: old.StartTime.Time}
	case !incoming.StartTime.IsZero():
		return &metav1.Time{Time: incoming.StartTime.Time}
	default:
		return &metav1.Time{Time: now}
	}
}

// phaseIsFinal reports whether before has reached a terminal phase which after would leave.
// Succeeded and Failed are never left; what explains them stays with them.
func phaseIsFinal(before, after *v1.PodStatus) bool {
	return IsTerminal(before.Phase) && before.Phase != after.Phase
}

// LeavesEnd reports whether a report would take a pod out of its terminal phase, so that the phase stays. A terminal
// phase that was reported while containers were running is withheld from the API (X5), and the report in which all
// containers have ended may change the phase: a pod ended by a shutdown of the node is first reported as Failed, and
// becomes Succeeded if its containers exit with 0.
func LeavesEnd(old, incoming *v1.PodStatus) bool {
	return phaseIsFinal(old, incoming) && !(IsTerminal(incoming.Phase) && endsAll(old, incoming))
}

// endsAll reports whether a container runs in old, and each that does has terminated in incoming.
func endsAll(old, incoming *v1.PodStatus) bool {
	ran := false
	was, is := ContainerLists(old), ContainerLists(incoming)
	for k := range was {
		for i := range was[k] {
			if was[k][i].State.Running == nil {
				continue
			}
			ran = true
			if next := StatusNamed(is[k], was[k][i].Name); next == nil || next.State.Terminated == nil {
				return false
			}
		}
	}
	return ran
}

// ContainerLists returns the three lists of container statuses.
func ContainerLists(status *v1.PodStatus) [3][]v1.ContainerStatus {
	return [3][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses}
}

// Flip is the effect of a probe result.
type Flip int

const (
	// Flipped: the container's field changed in the returned status.
	Flipped Flip = iota
	// NotFlipped: the status has this value already.
	NotFlipped
	// UnknownContainer: no regular or init container has this ID, for instance because the
	// container was restarted (H4).
	UnknownContainer
)

func (f Flip) String() string {
	switch f {
	case Flipped:
		return "flipped"
	case NotFlipped:
		return "not flipped"
	case UnknownContainer:
		return "unknown container"
	}
	return "invalid flip"
}

// WithContainerReady returns cached with one container's readiness set, and Ready and
// ContainersReady derived again (H1, H2). The two conditions carry the pod's generation; the
// status keeps its own (H5). Their transition times are final, so the result can be stored as it
// is. Cached is not modified: the result has its own copy of the lists that change and shares the
// rest. Unless [Flipped] is returned, the result is cached itself.
//
// Readiness gates are evaluated with the conditions in pod, since the cached conditions may be
// older (E3, H6).
func WithContainerReady(pod *v1.Pod, cached *v1.PodStatus, containerID string, ready bool, now time.Time) (v1.PodStatus, Flip) {
	gates := cached.Conditions
	if pod.ResourceVersion != "" {
		gates = pod.Status.Conditions
	}
	return Ownership{}.WithContainerReady(pod, gates, cached, containerID, ready, now)
}

// WithContainerReady is the function of the same name with this table. Gates are the newest known
// conditions of the pod in the API, the mirror pod's for a static pod; the conditions that the node
// owns are taken from cached.
func (o Ownership) WithContainerReady(pod *v1.Pod, gates []v1.PodCondition, cached *v1.PodStatus, containerID string, ready bool, now time.Time) (v1.PodStatus, Flip) {
	where := locate(cached, containerID)
	if where.index < 0 {
		return *cached, UnknownContainer
	}
	if where.of(cached).Ready == ready {
		return *cached, NotFlipped
	}
	next := *cached
	where.own(&next).Ready = ready
	next.Conditions = o.withReadiness(pod, gates, cached, &next, now)
	return next, Flipped
}

// WithContainerStarted is WithContainerReady for a container's startup. Started nil and Started
// false are different values, and no condition depends on Started (H3); pod and now are unused, so
// that both functions have the same signature.
func WithContainerStarted(_ *v1.Pod, cached *v1.PodStatus, containerID string, started bool, _ time.Time) (v1.PodStatus, Flip) {
	where := locate(cached, containerID)
	if where.index < 0 {
		return *cached, UnknownContainer
	}
	if said := where.of(cached).Started; said != nil && *said == started {
		return *cached, NotFlipped
	}
	next := *cached
	where.own(&next).Started = &started
	return next, Flipped
}

// withReadiness returns next's conditions with Ready and ContainersReady regenerated in
// place, or appended where missing.
func (o Ownership) withReadiness(pod *v1.Pod, gates []v1.PodCondition, cached, next *v1.PodStatus, now time.Time) []v1.PodCondition {
	containers := containersReady(pod, listsOf(next), next.Phase)
	ready := readyGiven(pod, &containers, func(t v1.PodConditionType) *v1.PodCondition {
		if o.IsForeign(t) {
			return FindCondition(gates, t)
		}
		return FindCondition(next.Conditions, t)
	})
	containers.LastTransitionTime = TransitionTime(cached, &containers, now)
	ready.LastTransitionTime = TransitionTime(cached, &ready, now)
	return withConditions(next.Conditions, &ready, &containers)
}

// place is where a container's status stands in a pod status.
type place struct {
	init  bool
	index int // negative if nowhere
}

// locate finds a container by its full ID. Containers that have no ID yet are never meant.
func locate(status *v1.PodStatus, containerID string) place {
	if containerID == "" {
		return place{index: -1}
	}
	for i := range status.ContainerStatuses {
		if sameText(status.ContainerStatuses[i].ContainerID, containerID) {
			return place{index: i}
		}
	}
	for i := range status.InitContainerStatuses {
		if sameText(status.InitContainerStatuses[i].ContainerID, containerID) {
			return place{init: true, index: i}
		}
	}
	return place{index: -1}
}

// of returns the status at this place, for reading.
func (p place) of(status *v1.PodStatus) *v1.ContainerStatus {
	if p.init {
		return &status.InitContainerStatuses[p.index]
	}
	return &status.ContainerStatuses[p.index]
}

// own gives status a list of its own and returns the element at this place, for writing.
func (p place) own(status *v1.PodStatus) *v1.ContainerStatus {
	if p.init {
		status.InitContainerStatuses = ExactCopy(status.InitContainerStatuses)
	} else {
		status.ContainerStatuses = ExactCopy(status.ContainerStatuses)
	}
	return p.of(status)
}
