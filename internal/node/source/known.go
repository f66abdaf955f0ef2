package source

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// known is the set of pods that a source has handed over. It turns full lists into changes.
type known struct {
	origin Origin
	handle func(Change)

	mu     sync.Mutex // guards pods; handle is called while it is held, so changes stay in order
	pods   map[types.UID]*v1.Pod
	synced atomic.Bool
}

// replace makes pods the whole set. same reports whether a known pod is unchanged.
func (k *known) replace(pods []*v1.Pod, same func(old, new *v1.Pod) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()

	next := make(map[types.UID]*v1.Pod, len(pods))
	var changed []*v1.Pod
	for _, pod := range pods {
		next[pod.UID] = pod
		if old, ok := k.pods[pod.UID]; !ok || !same(old, pod) {
			changed = append(changed, pod)
		}
	}
	var gone []*v1.Pod
	for uid, pod := range k.pods {
		if _, ok := next[uid]; !ok {
			gone = append(gone, pod)
		}
	}
	slices.SortFunc(gone, byName)
	k.pods = next

	if !k.synced.Load() {
		k.handle(Change{Origin: k.origin, Op: Set, Pods: changed})
		k.synced.Store(true)
		return
	}
	// Removals first: a name that changes its UID is freed before it is taken.
	if len(gone) > 0 {
		k.handle(Change{Origin: k.origin, Op: Remove, Pods: gone})
	}
	if len(changed) > 0 {
		k.handle(Change{Origin: k.origin, Op: Update, Pods: changed})
	}
}

func (k *known) update(pod *v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods[pod.UID] = pod
	k.handle(Change{Origin: k.origin, Op: Update, Pods: []*v1.Pod{pod}})
}

func (k *known) remove(pod *v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.pods[pod.UID]; !ok {
		return
	}
	delete(k.pods, pod.UID)
	k.handle(Change{Origin: k.origin, Op: Remove, Pods: []*v1.Pod{pod}})
}

func byName(a, b *v1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
