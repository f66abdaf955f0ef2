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
	total := atOnce(pod, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Requests })
	add(total, pod.Spec.Overhead)
	return total
}

// Limits returns what the containers of a pod may use together, by the same rules as [Requests]. Containers without a
// limit are not counted. Overhead is added to resources that have a limit.
func Limits(pod *v1.Pod) v1.ResourceList {
	total := atOnce(pod, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Limits })
	for name, q := range pod.Spec.Overhead {
		if limit, limited := total[name]; limited {
			limit.Add(q)
			total[name] = limit
		}
	}
	return total
}

// atOnce is the most that the containers of a pod have of each resource at the same time.
func atOnce(pod *v1.Pod, of func(*v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
	sidecars, most := v1.ResourceList{}, v1.ResourceList{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if podstatus.IsSidecar(c) {
			add(sidecars, of(&c.Resources))
			raise(most, sidecars)
			continue
		}
		during := sidecars.DeepCopy()
		add(during, of(&c.Resources))
		raise(most, during)
	}
	total := sidecars.DeepCopy()
	for i := range pod.Spec.Containers {
		add(total, of(&pod.Spec.Containers[i].Resources))
	}
	raise(total, most)
	if pod.Spec.Resources != nil {
		for name, q := range of(pod.Spec.Resources) {
			total[name] = q.DeepCopy()
		}
	}
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
