package podstatus

import v1 "k8s.io/api/core/v1"

// systemCritical is the lowest priority that belongs to the system, that of the class
// system-cluster-critical.
const systemCritical = 2_000_000_000

// IsCritical reports whether the pod is one that a node needs to work: static, a mirror, or
// of a priority that belongs to the system.
func IsCritical(pod *v1.Pod) bool {
	return IsStatic(pod) || IsMirror(pod) || pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}
