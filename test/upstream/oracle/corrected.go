package oracle

import (
	"runtime"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// correctedPods is the kubelet's pod manager with the answers that the corrections need.
//
// It also ends the goroutine of the kubelet's status manager. That goroutine loops forever and
// takes no context, so a synctest bubble would wait for it in vain. Each of its passes begins with
// a call of the pod manager, before any lock is taken, so this call can end it in order:
// runtime.Goexit runs its deferred calls and leaves nothing of the manager half done.
type correctedPods struct {
	kubepod.Manager
	stopped atomic.Bool
	// hasStatus reports whether the status manager has a status of the pod.
	hasStatus func(types.UID) bool
	// lenient: during a call, pods are said to restart always (T7).
	lenient atomic.Bool
	// earlier is, during a call, what the mirror is said to show (M0d).
	earlier atomic.Pointer[v1.PodStatus]
}

// GetUIDTranslations has no mirror for a static pod without a manifest (M0), and does not
// mention a mirror of whose pod there is no status, so that its version is forgotten (V4).
func (p *correctedPods) GetUIDTranslations() (map[kubetypes.ResolvedPodUID]kubetypes.MirrorPodUID, map[kubetypes.MirrorPodUID]kubetypes.ResolvedPodUID) {
	if p.stopped.Load() {
		runtime.Goexit()
	}
	mirrors, pods := p.Manager.GetUIDTranslations()
	for mirror, pod := range pods {
		if _, known := p.Manager.GetPodByUID(types.UID(pod)); !known {
			mirrors[pod] = ""
		}
		if !p.hasStatus(types.UID(pod)) {
			delete(pods, mirror)
		}
	}
	return mirrors, pods
}

func (p *correctedPods) GetMirrorPodByPod(pod *v1.Pod) (*v1.Pod, bool) {
	if earlier := p.earlier.Load(); earlier != nil {
		return &v1.Pod{Status: *earlier}, true
	}
	return p.Manager.GetMirrorPodByPod(pod)
}

func (p *correctedPods) GetPodByUID(uid types.UID) (*v1.Pod, bool) {
	pod, ok := p.Manager.GetPodByUID(uid)
	if ok && p.lenient.Load() {
		pod = alwaysRestarting(pod)
	}
	return pod, ok
}

// alwaysRestarting returns a copy of the pod for which the kubelet checks no transitions (T1).
func alwaysRestarting(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	return pod
}

// isUnknownMirror reports whether the pod is a mirror that the watch has not shown (S11).
func (p *correctedPods) isUnknownMirror(pod *v1.Pod) bool {
	return kubetypes.IsMirrorPod(pod) && types.UID(p.TranslatePodUID(pod.UID)) == pod.UID
}

// leniently makes a call during which a mismatch of init statuses is no reason to refuse it.
func (k *kubelet) leniently(lenient bool, call func()) {
	if lenient {
		k.tally.count(correctT7)
	}
	k.pods.lenient.Store(lenient)
	defer k.pods.lenient.Store(false)
	call()
}

// showsEarlierLife reports whether the API's pod is a mirror with the end of an earlier life of its
// static pod, or with one that another writer gave it (M0d).
func (k *kubelet) showsEarlierLife(pod *v1.Pod) bool {
	cached, kept := k.cached(types.UID(k.pods.TranslatePodUID(pod.UID)))
	return kept && kubetypes.IsMirrorPod(pod) && podstatus.IsTerminal(pod.Status.Phase) && cached.Phase != pod.Status.Phase &&
		!(podstatus.IsTerminal(cached.Phase) && k.couldRun(pod.UID))
}

// amend corrects what a write of the kubelet's makes of the status of a pod.
func (k *kubelet) amend(pod *v1.Pod, next *v1.PodStatus) {
	k.keepEnd(pod, next)
	k.keepGeneration(pod, next)
}

// keepGeneration gives the readiness conditions of a mirror the generation of the manifest (X6). What
// another writer observed stays where a report says nothing of it.
func (k *kubelet) keepGeneration(pod *v1.Pod, next *v1.PodStatus) {
	static, ok := k.pods.GetPodByUID(types.UID(k.pods.TranslatePodUID(pod.UID)))
	if !ok || !kubetypes.IsMirrorPod(pod) {
		return
	}
	for i := range next.Conditions {
		c := &next.Conditions[i]
		if !isReadiness(c.Type) || c.ObservedGeneration <= static.Generation {
			continue
		}
		old := podstatus.FindCondition(pod.Status.Conditions, c.Type)
		if old == nil || old.ObservedGeneration != c.ObservedGeneration || isTerminalReason(c.Reason) {
			k.tally.count(correctX6)
			c.ObservedGeneration = static.Generation
		}
	}
}

// keepEnd keeps a write of the kubelet's from changing a terminal phase (X7). A static pod may
// begin another life, but one that has ended does not end otherwise while it could run.
func (k *kubelet) keepEnd(pod *v1.Pod, next *v1.PodStatus) {
	old := &pod.Status
	if !podstatus.IsTerminal(old.Phase) || next.Phase == old.Phase {
		return
	}
	if kubetypes.IsMirrorPod(pod) && !(podstatus.IsTerminal(next.Phase) && k.couldRun(pod.UID)) {
		return
	}
	k.tally.count(correctX7)
	next.Phase, next.Reason, next.Message = old.Phase, old.Reason, old.Message
	cached, kept := k.cached(types.UID(k.pods.TranslatePodUID(pod.UID)))
	ready := saysReady(next)
	if !ready && !(kept && saysReady(cached)) { // X6 is not at work
		return
	}
	for _, t := range []v1.PodConditionType{v1.ContainersReady, v1.PodReady} {
		c := podrules.TerminalCondition(pod, t, old.Phase)
		c.LastTransitionTime = now().Rfc3339Copy()
		for _, known := range []*v1.PodStatus{old, next} { // False since then
			if seen := podstatus.FindCondition(known.Conditions, t); seen != nil && seen.Status == v1.ConditionFalse && (known == old || ready) {
				c.LastTransitionTime = seen.LastTransitionTime
			}
		}
		next.Conditions = withCondition(next.Conditions, c)
	}
}

// couldRun is what the pod workers say of a pod or of the pod behind a mirror (X9).
func (k *kubelet) couldRun(uid types.UID) bool {
	pod := types.UID(k.pods.TranslatePodUID(uid))
	could := k.workers(pod)
	if could && pod != uid {
		k.tally.count(correctX9)
	}
	return could
}

// backfillResize reads back what is not known yet, with its times (Z5). The manager hands out
// its own conditions, so they can be given the times.
func (k *kubelet) backfillResize(pods []*v1.Pod) {
	for _, pod := range pods {
		if !slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return isResize(c.Type) }) {
			continue
		}
		k.tally.count(correctZ5)
		if len(k.manager.GetPodResizeConditions(pod.UID)) == 0 {
			k.restoreResize(pod)
		}
	}
}

func isResize(t v1.PodConditionType) bool {
	return t == v1.PodResizePending || t == v1.PodResizeInProgress
}

// restoreResize gives the kubelet the resize conditions that the pod's status has.
func (k *kubelet) restoreResize(pod *v1.Pod) {
	k.manager.BackfillPodResizeConditions([]*v1.Pod{pod})
	for _, c := range k.manager.GetPodResizeConditions(pod.UID) {
		read := podstatus.FindCondition(pod.Status.Conditions, c.Type)
		c.LastProbeTime, c.LastTransitionTime = read.LastProbeTime, read.LastTransitionTime
	}
}

// clearRemoved drops the resize conditions of the pods that are not kept (O3).
func (k *kubelet) clearRemoved(pods []*nodePod, keep map[types.UID]bool) {
	for _, p := range pods {
		if uid := p.uid(); !keep[uid] && len(k.manager.GetPodResizeConditions(uid)) > 0 {
			k.tally.count(correctO3)
			k.clearResizePending(uid)
			k.clearResizeInProgress(uid)
		}
	}
}
