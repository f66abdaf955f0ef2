package pods

import (
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// Table holds the pods of a node. The zero value is not usable; call [New].
type Table struct {
	// mu guards all four maps, which always change together.
	mu           sync.RWMutex
	podsByUID    map[types.UID]*v1.Pod
	podsByName   map[types.NamespacedName]*v1.Pod
	mirrorsByUID map[types.UID]*v1.Pod
	mirrorByName map[types.NamespacedName]*v1.Pod
}

// New returns an empty table.
func New() *Table {
	return &Table{
		podsByUID:    make(map[types.UID]*v1.Pod),
		podsByName:   make(map[types.NamespacedName]*v1.Pod),
		mirrorsByUID: make(map[types.UID]*v1.Pod),
		mirrorByName: make(map[types.NamespacedName]*v1.Pod),
	}
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// Set adds the pod or replaces the pod of the same UID. Set returns the pod of another UID that had
// the same name, or nil. The displaced pod stays reachable by its UID until it is removed, since it
// may still be terminating.
func (t *Table) Set(pod *v1.Pod) (displaced *v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byUID, byName := t.indexes(pod)
	if before := byName[nameOf(pod)]; before != nil && before.UID != pod.UID {
		displaced = before
	}
	byUID[pod.UID] = pod
	byName[nameOf(pod)] = pod
	return displaced
}

// indexes returns the maps that a pod belongs to. It is called with the lock held.
func (t *Table) indexes(pod *v1.Pod) (byUID map[types.UID]*v1.Pod, byName map[types.NamespacedName]*v1.Pod) {
	if podstatus.IsMirror(pod) {
		return t.mirrorsByUID, t.mirrorByName
	}
	return t.podsByUID, t.podsByName
}

// Remove forgets the pod of this UID. Another pod that has taken its name keeps it.
func (t *Table) Remove(pod *v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byUID, byName := t.indexes(pod)
	delete(byUID, pod.UID)
	if named := byName[nameOf(pod)]; named != nil && named.UID == pod.UID {
		delete(byName, nameOf(pod))
	}
}

// ByUID returns the pod of this UID; mirror pods are not found this way.
func (t *Table) ByUID(uid types.UID) (*v1.Pod, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	pod, ok := t.podsByUID[uid]
	return pod, ok
}

// ByName returns the pod that has this name; mirror pods are not found this way.
func (t *Table) ByName(namespace, name string) (*v1.Pod, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	pod, ok := t.podsByName[types.NamespacedName{Namespace: namespace, Name: name}]
	return pod, ok
}

// MirrorOf returns the mirror of a static pod, if the API has one. While two static pods have the
// same name, for example because an edited pod replaces a terminating one, the mirror belongs to
// the pod whose UID is the hash in the mirror's annotation, otherwise to the pod that the table has
// under the name. The mirror of an older version, which has ended and is to be replaced, does not
// belong to the pod either.
func (t *Table) MirrorOf(pod *v1.Pod) (*v1.Pod, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	mirror, ok := t.mirrorByName[nameOf(pod)]
	if !ok || !mayStandFor(mirror, pod) {
		return nil, false
	}
	if behind := t.behind(mirror); behind != nil && behind.UID != pod.UID {
		return nil, false
	}
	return mirror, true
}

// behind returns the static pod that a mirror stands for. MirrorOf and TranslateUID both ask it, so
// that a mirror is never written to on behalf of two pods. It is called with the lock held.
func (t *Table) behind(mirror *v1.Pod) *v1.Pod {
	hash := types.UID(mirror.Annotations[v1.MirrorPodAnnotationKey])
	for _, pod := range [...]*v1.Pod{t.podsByUID[hash], t.podsByName[nameOf(mirror)]} {
		if pod != nil && nameOf(pod) == nameOf(mirror) && podstatus.IsStatic(pod) && mayStandFor(mirror, pod) {
			return pod
		}
	}
	return nil
}

// mayStandFor reports whether a mirror does not belong to another version of the static pod. A pod that
// does not say which version it is has the mirror of its name.
func mayStandFor(mirror, pod *v1.Pod) bool {
	hash, known := pod.Annotations[podstatus.HashAnnotation]
	return !known || mirror.Annotations[v1.MirrorPodAnnotationKey] == hash
}

// TranslateUID returns the UID under which this node knows a pod: the static pod's UID for a known
// mirror with a static pod, and the given UID otherwise.
func (t *Table) TranslateUID(uid types.UID) types.UID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	mirror, ok := t.mirrorsByUID[uid]
	if !ok {
		return uid
	}
	if pod := t.behind(mirror); pod != nil {
		return pod.UID
	}
	return uid
}

// All returns the pods, mirrors not among them, ordered by namespace, name and UID.
func (t *Table) All() []*v1.Pod {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return sorted(t.podsByUID)
}

// Mirrors returns the mirror pods, ordered by namespace, name and UID.
func (t *Table) Mirrors() []*v1.Pod {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return sorted(t.mirrorsByUID)
}

func sorted(pods map[types.UID]*v1.Pod) []*v1.Pod {
	list := make([]*v1.Pod, 0, len(pods))
	for _, pod := range pods {
		list = append(list, pod)
	}
	slices.SortFunc(list, func(a, b *v1.Pod) int {
		if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
			return c
		}
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(string(a.UID), string(b.UID))
	})
	return list
}
