package worker

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// A runtime may be third-party code. Its lists are sorted as its contract requires: an older
// attempt that is taken for the newest would be restarted again and again.

// listPod is Runtime.Pod with its attempts in order.
func (w *Workers) listPod(ctx context.Context, uid types.UID) (runtime.Pod, error) {
	found, err := w.opts.Runtime.Pod(ctx, uid)
	order(found.Containers)
	return found, err
}

// listPods is Runtime.Pods with the attempts in order, and without pods that have no manifest:
// there is no telling what they are.
func (w *Workers) listPods(ctx context.Context) ([]runtime.Pod, error) {
	found, err := w.opts.Runtime.Pods(ctx)
	found = slices.DeleteFunc(found, func(pod runtime.Pod) bool {
		if pod.Manifest == nil {
			w.opts.Logger.Error("runtime lists a pod without its manifest, ignoring it", "containers", len(pod.Containers))
		}
		return pod.Manifest == nil
	})
	for i := range found {
		order(found[i].Containers)
	}
	return found, err
}

// order sorts by name, and the newest attempt of a name first.
func order(containers []runtime.Container) {
	slices.SortStableFunc(containers, func(a, b runtime.Container) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Attempt, a.Attempt))
	})
}
