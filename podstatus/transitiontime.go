package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TransitionTime returns when the condition took its status: the time in old if old has the
// condition with the same status and a time, otherwise now (C4), in whole seconds (N1). Old
// may be nil.
func TransitionTime(old *v1.PodStatus, c *v1.PodCondition, now time.Time) metav1.Time {
	if old != nil {
		if before := FindCondition(old.Conditions, c.Type); before != nil && before.Status == c.Status && !before.LastTransitionTime.IsZero() {
			return wholeSeconds(before.LastTransitionTime.Time)
		}
	}
	return wholeSeconds(now)
}

// wholeSeconds is the precision in which the API keeps times.
func wholeSeconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

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
	return wholeSeconds(now)
}
