package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	runtimeutil "k8s.io/kubernetes/pkg/kubelet/kuberuntime/util"

	"github.com/statusd/statusd/podstatus"
)

// The reasons of conditions, under the names that the kubelet has for them.
const (
	UnknownContainerStatuses    = podstatus.ReasonUnknownContainerStatuses
	PodCompleted                = podstatus.ReasonPodCompleted
	PodFailed                   = podstatus.ReasonPodFailed
	ContainersNotReady          = podstatus.ReasonContainersNotReady
	ContainersNotInitialized    = podstatus.ReasonContainersNotInitialized
	ReadinessGatesNotReady      = podstatus.ReasonReadinessGatesNotReady
	RestartAllContainersStarted = podstatus.ReasonRestartAllContainersStarted
)

// GenerateContainersReadyCondition returns the condition ContainersReady.
func GenerateContainersReadyCondition(pod *v1.Pod, oldPodStatus *v1.PodStatus, containerStatuses []v1.ContainerStatus, podPhase v1.PodPhase) v1.PodCondition {
	return observed(pod, oldPodStatus, podstatus.ContainersReady(pod, containerStatuses, podPhase))
}

// GeneratePodReadyCondition returns the condition Ready.
func GeneratePodReadyCondition(pod *v1.Pod, oldPodStatus *v1.PodStatus, conditions []v1.PodCondition, containerStatuses []v1.ContainerStatus, podPhase v1.PodPhase) v1.PodCondition {
	return observed(pod, oldPodStatus, podstatus.Ready(pod, conditions, containerStatuses, podPhase))
}

// GeneratePodInitializedCondition returns the condition Initialized.
func GeneratePodInitializedCondition(pod *v1.Pod, oldPodStatus *v1.PodStatus, containerStatuses []v1.ContainerStatus, podPhase v1.PodPhase) v1.PodCondition {
	return observed(pod, oldPodStatus, podstatus.Initialized(pod, oldPodStatus, containerStatuses, podPhase))
}

// GeneratePodReadyToStartContainersCondition returns the condition PodReadyToStartContainers: whether the pod has a sandbox that need
// not be replaced.
func GeneratePodReadyToStartContainersCondition(pod *v1.Pod, oldPodStatus *v1.PodStatus, podStatus *kubecontainer.PodStatus) v1.PodCondition {
	condition := v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue}
	if replace, _, _ := runtimeutil.PodSandboxChanged(pod, podStatus); replace {
		condition.Status = v1.ConditionFalse
	}
	return observed(pod, oldPodStatus, condition)
}

// GenerateAllContainersRestartingCondition returns the condition AllContainersRestarting, which carries no generation.
func GenerateAllContainersRestartingCondition(pod *v1.Pod, podStatus *kubecontainer.PodStatus, oldPodStatus *v1.PodStatus, podPhase v1.PodPhase) v1.PodCondition {
	condition := v1.PodCondition{Type: v1.AllContainersRestarting, Status: v1.ConditionFalse}
	switch {
	case podPhase == v1.PodSucceeded:
		condition.Reason = PodCompleted
	case podPhase == v1.PodFailed:
		condition.Reason = PodFailed
	case kubecontainer.ShouldAllContainersRestart(pod, podStatus, oldPodStatus) && !kubecontainer.AllContainersRestartCleanedUp(pod, podStatus):
		condition.Status = v1.ConditionTrue
		condition.Reason = RestartAllContainersStarted
		condition.Message = "container exited with restart policy rule"
	}
	return condition
}

// observed sets the generation that a condition observes.
func observed(pod *v1.Pod, old *v1.PodStatus, condition v1.PodCondition) v1.PodCondition {
	condition.ObservedGeneration = podutil.CalculatePodConditionObservedGeneration(old, pod.Generation, condition.Type)
	return condition
}

// NeedToReconcilePodReadiness reports whether the Ready condition of a pod with readiness gates does not say what containers and gates
// say. Sidecars are counted: the stock kubelet leaves them out, and syncs each pod that has one again.
func NeedToReconcilePodReadiness(pod *v1.Pod) bool {
	has := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady)
	if len(pod.Spec.ReadinessGates) == 0 || has == nil {
		return false
	}
	containers := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	want := podstatus.Ready(pod, pod.Status.Conditions, containers, pod.Status.Phase)
	return has.Status != want.Status || has.Message != want.Message
}
