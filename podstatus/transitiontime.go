package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HasTransitionTime reports whether the node itself keeps the last transition time of
// conditions of this type, whatever time a reporter put in (C3).
func HasTransitionTime(t v1.PodConditionType) bool {
	switch t {
	case v1.ContainersReady,
		v1.PodReady,
		v1.PodInitialized,
		v1.PodReadyToStartContainers,
		v1.PodScheduled,
		v1.DisruptionTarget,
		v1.AllContainersRestarting:
		return true
	}
	return false
}

// TransitionTime returns when the condition took its status: the time in old if old has the
// condition with the same status, otherwise now (C4), in whole seconds (N1). Old may be nil.
func TransitionTime(old *v1.PodStatus, c *v1.PodCondition, now time.Time) metav1.Time {
	if old != nil {
		if before := FindCondition(old.Conditions, c.Type); before != nil && before.Status == c.Status {
			return wholeSeconds(before.LastTransitionTime.Time)
		}
	}
	return wholeSeconds(now)
}

// wholeSeconds is the precision in which the API keeps times.
func wholeSeconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
