package podstatus

import v1 "k8s.io/api/core/v1"

// AllocationOf returns what a node sets aside for a pod when it admits it: the resources
// of every container of the spec, init containers included, and those of the pod itself
// (A9). The result shares nothing with the pod.
func AllocationOf(pod *v1.Pod) Allocation {
	allocation := Allocation{Containers: make(map[string]v1.ResourceRequirements, len(pod.Spec.Containers)+len(pod.Spec.InitContainers))}
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			allocation.Containers[containers[i].Name] = *containers[i].Resources.DeepCopy()
		}
	}
	allocation.PodLevel = pod.Spec.Resources.DeepCopy()
	return allocation
}
