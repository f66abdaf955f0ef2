package fit

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/podstatus"
)

// Requests returns the resources that a pod needs of a node: the larger of the sum of its regular
// containers and sidecars, and the maximum of any init container together with the sidecars that
// run by then. Requests of the pod itself replace this value, and its overhead is added.
func Requests(pod *v1.Pod) v1.ResourceList {
	sidecars, most := v1.ResourceList{}, v1.ResourceList{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if podstatus.IsSidecar(c) {
			add(sidecars, c.Resources.Requests)
			raise(most, sidecars)
			continue
		}
		during := sidecars.DeepCopy()
		add(during, c.Resources.Requests)
		raise(most, during)
	}
	total := sidecars.DeepCopy()
	for i := range pod.Spec.Containers {
		add(total, pod.Spec.Containers[i].Resources.Requests)
	}
	raise(total, most)
	if pod.Spec.Resources != nil {
		for name, q := range pod.Spec.Resources.Requests {
			total[name] = q.DeepCopy()
		}
	}
	add(total, pod.Spec.Overhead)
	return total
}

func add(sum, more v1.ResourceList) {
	for name, q := range more {
		have := sum[name]
		have.Add(q)
		sum[name] = have
	}
}

func raise(most, candidate v1.ResourceList) {
	for name, q := range candidate {
		if have, ok := most[name]; !ok || q.Cmp(have) > 0 {
			most[name] = q.DeepCopy()
		}
	}
}

// Total returns the sum of the pods' requests, and the number of pods.
func Total(pods []*v1.Pod) v1.ResourceList {
	total := v1.ResourceList{v1.ResourcePods: *resource.NewQuantity(int64(len(pods)), resource.DecimalSI)}
	for _, pod := range pods {
		for name, quantity := range Requests(pod) {
			sum := total[name]
			sum.Add(quantity)
			total[name] = sum
		}
	}
	return total
}
