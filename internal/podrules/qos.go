package podrules

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QOSClass returns the quality of service class of the pod. The API server sets the class once from
// the resources of the spec; only static pods come without a class.
func QOSClass(pod *v1.Pod) v1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	if r := pod.Spec.Resources; r != nil && (asks(r.Requests) || asks(r.Limits)) {
		return classOf(asks(r.Requests) || asks(r.Limits), guaranteed(r))
	}
	some, all := false, true
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			r := &list[i].Resources
			some = some || asks(r.Requests) || asks(r.Limits)
			all = all && guaranteed(r)
		}
	}
	return classOf(some, all)
}

func classOf(some, all bool) v1.PodQOSClass {
	switch {
	case !some:
		return v1.PodQOSBestEffort
	case all:
		return v1.PodQOSGuaranteed
	}
	return v1.PodQOSBurstable
}

// asks reports whether the list names cpu or memory; other resources do not count.
func asks(list v1.ResourceList) bool { return positive(list.Cpu()) || positive(list.Memory()) }

// guaranteed reports whether cpu and memory are limited to what is requested.
func guaranteed(r *v1.ResourceRequirements) bool {
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		limit, limited := r.Limits[name]
		request, requested := r.Requests[name]
		if !limited || !positive(&limit) || requested && positive(&request) && request.Cmp(limit) != 0 {
			return false
		}
	}
	return true
}

func positive(q *resource.Quantity) bool { return q != nil && q.Sign() > 0 }
