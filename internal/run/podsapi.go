package run

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// wholePods are the pods of this node with the statuses that it reports, as the Pods API has them.
type wholePods struct{ *Process }

func (w wholePods) Synced() bool { return isClosed(w.node.Listed) }

func (w wholePods) Pods() []*v1.Pod { return w.node.Pods.All() }

func (w wholePods) Pod(uid types.UID) (*v1.Pod, bool) { return w.node.Pods.ByUID(uid) }

func (w wholePods) Watch(ctx context.Context, changed func(types.UID)) error {
	w.console.Listen(ctx, changed, w.UIDs)
	return nil
}
