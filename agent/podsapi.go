package agent

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// wholePods are the pods of this node with the statuses that it reports, as the Pods API has them.
type wholePods struct{ *Agent }

func (a wholePods) Synced() bool { return a.dispatcher.synced() }

func (a wholePods) Pods() []*v1.Pod {
	all := a.table.All()
	for i, pod := range all {
		all[i] = a.withStatus(pod)
	}
	return all
}

func (a wholePods) Pod(uid types.UID) (*v1.Pod, bool) {
	pod, ok := a.table.ByUID(uid)
	if !ok {
		return nil, false
	}
	return a.withStatus(pod), true
}

func (a wholePods) Watch(ctx context.Context, changed func(types.UID)) error {
	a.changes.Listen(ctx, changed)
	return nil
}

// withStatus is a copy of a pod with the status that this node reports.
func (a wholePods) withStatus(pod *v1.Pod) *v1.Pod {
	status, ok := a.manager.GetPodStatus(pod.UID)
	if !ok {
		return pod
	}
	shown := *pod
	shown.Status = status
	return &shown
}
