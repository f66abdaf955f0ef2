package podstatus

import v1 "k8s.io/api/core/v1"

const (
	// sourceAnnotation names where a node learned of a pod: a manifest source, or the API server.
	sourceAnnotation = "kubernetes.io/config.source"
	sourceAPI        = "api"
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
	source, known := pod.Annotations[sourceAnnotation]
	return known && source != sourceAPI && pod.ResourceVersion == "" && !IsMirror(pod)
}

// IsMirror reports whether the pod is the API server's shadow of a static pod.
func IsMirror(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	return mirror
}

// IsSidecar reports whether an init container keeps running beside the regular
// containers: one with restart policy Always of its own.
func IsSidecar(init *v1.Container) bool {
	return init.RestartPolicy != nil && *init.RestartPolicy == v1.ContainerRestartPolicyAlways
}
