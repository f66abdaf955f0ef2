package podrules

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// The kubelet's annotations that distinguish static pods from pods of the API server. A mirror pod
// also has [v1.MirrorPodAnnotationKey], with the hash of its static pod as value.
const (
	// SourceAnnotation is the source of a pod: SourceAPI or SourceFile. Pods from the API server
	// need not have it.
	SourceAnnotation = "kubernetes.io/config.source"
	// HashAnnotation identifies the content of a static pod. It equals the pod's UID.
	HashAnnotation = "kubernetes.io/config.hash"
	// SeenAnnotation is when the source first saw this content, in RFC 3339.
	SeenAnnotation = "kubernetes.io/config.seen"
)

// The values of [SourceAnnotation].
const (
	SourceAPI  = "api"
	SourceFile = "file"
)

// IsTerminal reports whether the phase is final: Succeeded or Failed.
func IsTerminal(phase v1.PodPhase) bool {
	return phase == v1.PodSucceeded || phase == v1.PodFailed
}

// IsStatic reports whether the pod comes from a manifest on the node rather than from the API
// server. The annotation alone does not decide: every user of the API may set it on a pod. Only
// objects stored by the API server have a resource version. A pod without the annotation and a
// mirror pod are not static.
func IsStatic(pod *v1.Pod) bool {
	source, known := pod.Annotations[SourceAnnotation]
	return known && source != SourceAPI && pod.ResourceVersion == "" && !IsMirror(pod)
}

// IsMirror reports whether the pod is a mirror pod, the API object for a static pod.
func IsMirror(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	return mirror
}

// IsMirrorOf reports whether a mirror pod belongs to exactly this static pod and is not being
// deleted. IsMirrorOf returns false if static is nil.
func IsMirrorOf(mirror, static *v1.Pod) bool {
	return static != nil && mirror.DeletionTimestamp == nil &&
		mirror.Annotations[v1.MirrorPodAnnotationKey] == static.Annotations[HashAnnotation]
}

// IsSidecar reports whether an init container is a sidecar, which keeps running beside the regular
// containers: its own restart policy is Always.
func IsSidecar(init *v1.Container) bool {
	return init.RestartPolicy != nil && *init.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// systemCritical is the lowest system priority: the priority of the class system-cluster-critical.
const systemCritical = 2_000_000_000

// IsCritical reports whether the pod is critical: a static pod, a mirror pod, or a pod with a
// system priority.
func IsCritical(pod *v1.Pod) bool {
	return IsStatic(pod) || IsMirror(pod) || pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}

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

// isNil reports whether no container was ever reported, which differs from an empty report (C5).
func (l statusLists) isNil() bool { return l.init == nil && l.regular == nil }

// named returns the status of a container, or nil.
func (l statusLists) named(name string) *v1.ContainerStatus {
	if s := StatusNamed(l.init, name); s != nil {
		return s
	}
	return StatusNamed(l.regular, name)
}

// FindContainer returns a pointer to the init or regular container of the name in the spec
// of the pod, or nil.
func FindContainer(pod *v1.Pod, name string) *v1.Container {
	if c := SpecNamed(pod.Spec.InitContainers, name); c != nil {
		return c
	}
	return SpecNamed(pod.Spec.Containers, name)
}

// FindContainerStatus returns a pointer to the status of the init or regular container of the name,
// or nil. The pointer points into status: a caller that does not own status must not write through
// it.
func FindContainerStatus(status *v1.PodStatus, name string) *v1.ContainerStatus {
	return listsOf(status).named(name)
}

// IsStarted reports whether Started is true, not nil or false (H3). Status may be nil.
func IsStarted(status *v1.ContainerStatus) bool {
	return status != nil && status.Started != nil && *status.Started
}

// StatusNamed returns a pointer into statuses, or nil.
func StatusNamed(statuses []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// SpecNamed returns a pointer into containers, or nil.
func SpecNamed(containers []v1.Container, name string) *v1.Container {
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	return nil
}

// ExactCopy copies a slice without spare capacity: an append to a shared result must never write
// into memory to which another holder appends.
func ExactCopy[T any](s []T) []T {
	c := make([]T, len(s))
	copy(c, s)
	return c
}

// withConditions returns a copy of conditions in which two are set, each in place of the
// condition of its type, or at the end.
func withConditions(conditions []v1.PodCondition, first, second *v1.PodCondition) []v1.PodCondition {
	c := setCondition(ExactCopy(conditions), first)
	return slices.Clip(setCondition(c, second))
}

// setCondition writes into conditions, which the caller must own.
func setCondition(conditions []v1.PodCondition, c *v1.PodCondition) []v1.PodCondition {
	if at := FindCondition(conditions, c.Type); at != nil {
		observed := laterGeneration(c, at)
		*at = *c
		at.ObservedGeneration = observed
		return conditions
	}
	return append(conditions, *c)
}
