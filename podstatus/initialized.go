package podstatus

import v1 "k8s.io/api/core/v1"

// Initialized returns the Initialized condition: whether each init container has done its
// work, or did at some time (C10, C11, C12). Statuses are those of init and regular
// containers together; old is what was reported before, and may be nil.
func Initialized(pod *v1.Pod, old *v1.PodStatus, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	if statuses == nil && len(pod.Spec.InitContainers) > 0 {
		return generatedFalse(pod, v1.PodInitialized, ReasonUnknownContainerStatuses, "")
	}
	unknown, incomplete := notInitialized(pod, statuses)
	if phase == v1.PodSucceeded && len(unknown) == 0 {
		c := generated(pod, v1.PodInitialized, v1.ConditionTrue)
		c.Reason = ReasonPodCompleted
		return c
	}
	if len(unknown)+len(incomplete) == 0 || anyRegularStarted(pod, statuses) || wasInitialized(old) {
		return generated(pod, v1.PodInitialized, v1.ConditionTrue)
	}
	return generatedFalse(pod, v1.PodInitialized, ReasonContainersNotInitialized,
		lists("unknown", unknown, "incomplete", incomplete))
}

// notInitialized names the init containers, in spec order, without a status or with work
// left: a sidecar must have started, any other must be ready, which means that it exited with 0.
func notInitialized(pod *v1.Pod, statuses []v1.ContainerStatus) (unknown, incomplete []string) {
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		status := statusNamed(statuses, spec.Name)
		switch {
		case status == nil:
			unknown = append(unknown, spec.Name)
		case IsSidecar(spec) && !IsStarted(status), !IsSidecar(spec) && !status.Ready:
			incomplete = append(incomplete, spec.Name)
		}
	}
	return unknown, incomplete
}

// anyRegularStarted is proof that initialisation was over once, also while sidecars restart.
func anyRegularStarted(pod *v1.Pod, statuses []v1.ContainerStatus) bool {
	for i := range statuses {
		state := &statuses[i].State
		if (state.Running != nil || state.Terminated != nil) && specNamed(pod.Spec.Containers, statuses[i].Name) != nil {
			return true
		}
	}
	return false
}

// wasInitialized keeps a pod initialised while all its containers restart in place (C12).
func wasInitialized(old *v1.PodStatus) bool {
	return old != nil && isTrue(old.Conditions, v1.PodInitialized)
}
