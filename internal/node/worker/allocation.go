package worker

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// A pod is allocated its resources when it is admitted. A resize requests other resources; until
// the resize is granted, the pod runs, counts and is reported with its allocated resources.

// withAllocation returns the pod with its allocated resources, or the pod itself if it requests the
// same ones.
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

// allocated returns the earlier allocation of a pod: the journal's record or, for a pod that an
// earlier process has started, the resources that it was started with.
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
