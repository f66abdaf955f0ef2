package podstatus

import v1 "k8s.io/api/core/v1"

// Reasons of the conditions that the node generates. People and programs match on them.
const (
	// ReasonUnknownContainerStatuses: no container was reported at all.
	ReasonUnknownContainerStatuses = "UnknownContainerStatuses"
	// ReasonPodCompleted: the pod has succeeded, so its containers serve no more.
	ReasonPodCompleted = "PodCompleted"
	// ReasonPodFailed: the pod has failed, whatever its containers still say.
	ReasonPodFailed = "PodFailed"
	// ReasonContainersNotReady: a container is unready or unknown; the message lists which.
	ReasonContainersNotReady = "ContainersNotReady"
	// ReasonContainersNotInitialized: an init container is incomplete or unknown; the message lists which.
	ReasonContainersNotInitialized = "ContainersNotInitialized"
	// ReasonReadinessGatesNotReady: all containers are ready, but a readiness gate is not.
	ReasonReadinessGatesNotReady = "ReadinessGatesNotReady"
	// ReasonRestartAllContainersStarted: a container's exit restarts the whole pod.
	ReasonRestartAllContainersStarted = "RestartAllContainersStarted"
	// ReasonContainerStatusUnknown: how the container ended was not seen.
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
	// ReasonRestartingAllContainers: the container was stopped because another one asked for a
	// restart of the whole pod; it runs again whatever its own policy says.
	ReasonRestartingAllContainers = "RestartingAllContainers"
	// ReasonDeadlineExceeded: the pod was active for longer than its spec allows.
	ReasonDeadlineExceeded = "DeadlineExceeded"
)

// generated returns a condition that speaks about the pod's current generation (C15).
func generated(pod *v1.Pod, t v1.PodConditionType, status v1.ConditionStatus) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: status, ObservedGeneration: pod.Generation}
}

// generatedFalse returns such a condition that is False for a reason.
func generatedFalse(pod *v1.Pod, t v1.PodConditionType, reason, message string) v1.PodCondition {
	c := generated(pod, t, v1.ConditionFalse)
	c.Reason, c.Message = reason, message
	return c
}
