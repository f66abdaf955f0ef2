package podstatus

import v1 "k8s.io/api/core/v1"

// IsOwned reports whether only the node writes conditions of this type (C1). An owned
// condition that the node does not report is removed from the API.
func IsOwned(t v1.PodConditionType) bool {
	switch t {
	case v1.PodScheduled,
		v1.PodReady,
		v1.PodInitialized,
		v1.ContainersReady,
		v1.PodResizeInProgress,
		v1.PodResizePending,
		v1.PodReadyToStartContainers,
		v1.AllContainersRestarting:
		return true
	}
	return false
}

// IsShared reports whether the node and others both write conditions of this type (C2).
// Types that are neither owned nor shared are foreign: the node never touches them.
func IsShared(t v1.PodConditionType) bool { return t == v1.DisruptionTarget }

// FindCondition returns a pointer to the first condition of the type in conditions, or nil.
// It points into the slice: whoever does not own the slice must not write through it.
func FindCondition(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// isTrue reports whether the condition exists and is True.
func isTrue(conditions []v1.PodCondition, t v1.PodConditionType) bool {
	c := FindCondition(conditions, t)
	return c != nil && c.Status == v1.ConditionTrue
}
