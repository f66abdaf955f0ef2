package worker

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// A pod is allocated its resources when it is admitted. A resize asks for others; until it
// is granted, the pod is run, counted and reported with those that it was allocated.

// withAllocation returns the pod with the resources that it was allocated, which is the pod
// itself if it asks for no others.
func withAllocation(pod *v1.Pod, allocated *podstatus.Allocation) *v1.Pod {
	if allocated == nil || equality.Semantic.DeepEqual(podstatus.AllocationOf(pod), *allocated) {
		return pod
	}
	held := pod.DeepCopy()
	held.Spec.Resources = allocated.PodLevel.DeepCopy()
	for _, list := range [][]v1.Container{held.Spec.InitContainers, held.Spec.Containers} {
		for i := range list {
			if resources, ok := allocated.Containers[list[i].Name]; ok {
				list[i].Resources = *resources.DeepCopy()
			}
		}
	}
	return held
}

// allocated is what a pod was allocated before: what the journal says, or else, for a pod
// that an earlier process has started, what it was started with.
func (w *Workers) allocated(uid types.UID, left *v1.Pod) *podstatus.Allocation {
	if before, ok := w.opts.Status.GetPodAllocation(uid); ok {
		return &before
	}
	if left == nil {
		return nil
	}
	before := podstatus.AllocationOf(left)
	return &before
}

// record puts what the pod was allocated into the journal, if it is not there.
func (p *worker) record(pod *v1.Pod) {
	wanted := podstatus.AllocationOf(pod)
	if p.recorded != nil && equality.Semantic.DeepEqual(*p.recorded, wanted) {
		return
	}
	if err := p.w.opts.Status.SetPodAllocation(pod); err != nil {
		p.log.Error("recording the allocation failed, will retry", "err", err)
		return // again in the next turn
	}
	p.recorded = &wanted
}
