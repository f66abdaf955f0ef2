package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Next returns the status to store when incoming is reported over old (U7): transition
// times against old (C3, C4), the start time that was there first (U8), an observed
// generation that never decreases (G3), of two conditions of one type the last (E7), and a
// phase that stays if it was terminal, all of it normalised. A caller that reports for a
// generation of the pod (U2) sets incoming's observed generation first. The result shares
// nothing with incoming.
func Next(pod *v1.Pod, old, incoming *v1.PodStatus, now time.Time) v1.PodStatus {
	return Ownership{}.Next(pod, old, incoming, now)
}

// Next is [Next] by this table.
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
	if phaseIsFinal(old, incoming) {
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
		if lastOfType(list[i+1:], list[i].Type) == nil {
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

// phaseIsFinal says that before has reached a terminal phase which after would leave.
// Succeeded and Failed are never left; what explains them stays with them.
func phaseIsFinal(before, after *v1.PodStatus) bool {
	return IsTerminal(before.Phase) && before.Phase != after.Phase
}
