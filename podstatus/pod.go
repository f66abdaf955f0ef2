package podstatus

import v1 "k8s.io/api/core/v1"

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
