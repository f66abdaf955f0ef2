package agent

import (
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// conditions are those that follow from the container statuses.
func conditions(pod *v1.Pod, s *v1.PodStatus) []v1.PodCondition {
	return []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
		{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue},
		podstatus.Initialized(pod, &pod.Status, s.ContainerStatuses, s.Phase),
		podstatus.Ready(pod, nil, s.ContainerStatuses, s.Phase),
		podstatus.ContainersReady(pod, s.ContainerStatuses, s.Phase),
	}
}
