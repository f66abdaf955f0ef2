package podstatus

import v1 "k8s.io/api/core/v1"

// ReadyToStartContainers returns the PodReadyToStartContainers condition: True while the
// pod has a sandbox with its network in place, so that no new one is needed (C13).
func ReadyToStartContainers(pod *v1.Pod, needsNewSandbox bool) v1.PodCondition {
	if needsNewSandbox {
		return generated(pod, v1.PodReadyToStartContainers, v1.ConditionFalse)
	}
	return generated(pod, v1.PodReadyToStartContainers, v1.ConditionTrue)
}
