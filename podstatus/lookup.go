package podstatus

import v1 "k8s.io/api/core/v1"

// statusLists is a container status list in two parts, so that the init and the regular
// statuses of a pod can be searched as one without being joined into a new slice.
type statusLists struct {
	init    []v1.ContainerStatus
	regular []v1.ContainerStatus
}

// listsOf are all statuses of a pod that count for readiness.
func listsOf(status *v1.PodStatus) statusLists {
	return statusLists{init: status.InitContainerStatuses, regular: status.ContainerStatuses}
}

// isNil says that nobody ever reported a container, which differs from an empty report (C5).
func (l statusLists) isNil() bool { return l.init == nil && l.regular == nil }

// named returns the status of a container, or nil.
func (l statusLists) named(name string) *v1.ContainerStatus {
	if s := statusNamed(l.init, name); s != nil {
		return s
	}
	return statusNamed(l.regular, name)
}

// FindContainer returns a pointer to the init or regular container of the name in the spec
// of the pod, or nil.
func FindContainer(pod *v1.Pod, name string) *v1.Container {
	if c := specNamed(pod.Spec.InitContainers, name); c != nil {
		return c
	}
	return specNamed(pod.Spec.Containers, name)
}

// FindContainerStatus returns a pointer to the status of the init or regular container of
// the name, or nil. It points into status: a caller that does not own it must not write.
func FindContainerStatus(status *v1.PodStatus, name string) *v1.ContainerStatus {
	return listsOf(status).named(name)
}

// IsStarted reports whether the container is known to have started: Started nil and Started
// false are different values, and neither is a yes (H3). Status may be nil.
func IsStarted(status *v1.ContainerStatus) bool {
	return status != nil && status.Started != nil && *status.Started
}

// statusNamed returns a pointer into statuses, or nil.
func statusNamed(statuses []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// specNamed returns a pointer into containers, or nil.
func specNamed(containers []v1.Container, name string) *v1.Container {
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	return nil
}
