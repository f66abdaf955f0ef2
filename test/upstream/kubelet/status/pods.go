package status

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// PodManager is what the manager needs of the kubelet's table of pods.
type PodManager interface {
	GetPodByUID(types.UID) (*v1.Pod, bool)
	GetMirrorPodByPod(*v1.Pod) (*v1.Pod, bool)
	TranslatePodUID(uid types.UID) kubetypes.ResolvedPodUID
	GetUIDTranslations() (podToMirror map[kubetypes.ResolvedPodUID]kubetypes.MirrorPodUID, mirrorToPod map[kubetypes.MirrorPodUID]kubetypes.ResolvedPodUID)
}

// table is the kubelet's table of pods as the manager asks for it. The kubelet's drops a static pod with its manifest, while its
// containers still run: their ends would not be reported. This one has a static pod until its status is removed.
type table struct {
	pods PodManager

	mu      sync.Mutex // guards statics
	statics map[types.UID]*v1.Pod
}

func newTable(pods PodManager) *table { return &table{pods: pods, statics: map[types.UID]*v1.Pod{}} }

// reported keeps a static pod with a reported status.
func (t *table) reported(pod *v1.Pod) {
	if !kubetypes.IsStaticPod(pod) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.statics[pod.UID] = pod
}

// removed forgets a pod whose status was removed.
func (t *table) removed(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.statics, uid)
}

func (t *table) ByUID(uid types.UID) (*v1.Pod, bool) {
	if pod, ok := t.pods.GetPodByUID(uid); ok {
		return pod, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	pod, ok := t.statics[uid]
	return pod, ok
}

// MirrorOf returns the mirror of a static pod. While an edited pod replaces an earlier version, the mirror of the name belongs
// to the earlier version and must not receive the edited pod's status.
func (t *table) MirrorOf(pod *v1.Pod) (*v1.Pod, bool) {
	mirror, ok := t.pods.GetMirrorPodByPod(pod)
	if !ok {
		return nil, false
	}
	version, known := pod.Annotations[kubetypes.ConfigHashAnnotationKey]
	if known && mirror.Annotations[kubetypes.ConfigMirrorAnnotationKey] != version {
		return nil, false
	}
	return mirror, true
}

func (t *table) TranslateUID(uid types.UID) types.UID { return types.UID(t.pods.TranslatePodUID(uid)) }
