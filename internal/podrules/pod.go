package podrules

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// The annotations that distinguish static pods from those of the API server. They are the
// kubelet's. A mirror pod carries [v1.MirrorPodAnnotationKey] as well, with the hash of its
// static pod as value.
const (
	// SourceAnnotation is where the node learned of a pod: SourceAPI or SourceFile. Pods of
	// the API server need not carry it.
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

// IsTerminal reports whether a pod of this phase has ended and may never leave the phase.
func IsTerminal(phase v1.PodPhase) bool {
	return phase == v1.PodSucceeded || phase == v1.PodFailed
}

// IsStatic reports whether the pod comes from a manifest on the node rather than from the
// API server. The annotation alone does not decide: every user of the API may set it on a
// pod. An object that the API server has stored carries a resource version, one that was
// read from a manifest has none. A pod without the annotation and a mirror pod are not static.
func IsStatic(pod *v1.Pod) bool {
	source, known := pod.Annotations[SourceAnnotation]
	return known && source != SourceAPI && pod.ResourceVersion == "" && !IsMirror(pod)
}

// IsMirror reports whether the pod is the API server's shadow of a static pod.
func IsMirror(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	return mirror
}

// IsMirrorOf reports whether a mirror pod shadows exactly this static pod and is not being
// deleted. It returns false if static is nil.
func IsMirrorOf(mirror, static *v1.Pod) bool {
	return static != nil && mirror.DeletionTimestamp == nil &&
		mirror.Annotations[v1.MirrorPodAnnotationKey] == static.Annotations[HashAnnotation]
}

// IsSidecar reports whether an init container keeps running beside the regular
// containers: one with restart policy Always of its own.
func IsSidecar(init *v1.Container) bool {
	return init.RestartPolicy != nil && *init.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// systemCritical is the lowest priority that belongs to the system, that of the class
// system-cluster-critical.
const systemCritical = 2_000_000_000

// IsCritical reports whether the pod is one that a node needs to work: static, a mirror, or
// of a priority that belongs to the system.
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

// ExactCopy copies a slice without spare capacity: an append to a shared result must never
// write into memory that another holder appends to as well.
func ExactCopy[T any](s []T) []T {
	c := make([]T, len(s))
	copy(c, s)
	return c
}

// withConditions returns a copy of conditions in which two are set, each in the place of the
// one of its type, or at the end.
func withConditions(conditions []v1.PodCondition, first, second *v1.PodCondition) []v1.PodCondition {
	c := setCondition(ExactCopy(conditions), first)
	return slices.Clip(setCondition(c, second))
}

// setCondition writes into conditions, which the caller must own.
func setCondition(conditions []v1.PodCondition, c *v1.PodCondition) []v1.PodCondition {
	if at := FindCondition(conditions, c.Type); at != nil {
		*at = *c
		return conditions
	}
	return append(conditions, *c)
}
