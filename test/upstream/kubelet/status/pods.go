package status

import (
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

// table is the kubelet's table of pods as the manager asks for it.
type table struct{ pods PodManager }

func (t table) ByUID(uid types.UID) (*v1.Pod, bool) { return t.pods.GetPodByUID(uid) }

func (t table) MirrorOf(pod *v1.Pod) (*v1.Pod, bool) { return t.pods.GetMirrorPodByPod(pod) }

func (t table) TranslateUID(uid types.UID) types.UID { return types.UID(t.pods.TranslatePodUID(uid)) }
