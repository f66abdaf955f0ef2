package oracle

import (
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// This file is the kubelet's side of the calls of a pod worker, with the corrections that
// depend on what the call is about.

// reportToKubelet passes a report to the kubelet's manager.
func (r *run) reportToKubelet(p *nodePod, status v1.PodStatus) (changed bool) {
	k := r.kubelet()
	if cutMessages(p, &status) {
		k.tally.count(correctN3)
	}
	if hasDuplicate(status.Conditions) {
		k.tally.count(correctE7)
		status.Conditions = lastOfEachType(status.Conditions)
	}
	old := r.before(p, theKubelet)
	earlier := r.beginLife(p, old, &status)
	if earlier != nil {
		old = earlier
	}
	if podrules.LeavesEnd(old, &status) {
		k.tally.count(correctX7)
		status.Phase, status.Reason, status.Message = old.Phase, old.Reason, old.Message
	}
	pod := r.held(p, theKubelet)
	lenient := wouldRefuse(p, old) && podrules.CheckTransitions(p.spec, old, &status) == nil
	if lenient {
		pod = alwaysRestarting(pod)
	}
	k.pods.earlier.Store(earlier)
	defer k.pods.earlier.Store(nil)
	k.leniently(lenient, func() { changed = k.report(pod, status) })
	return changed
}

// wouldRefuse reports whether the kubelet refuses whatever is reported over a status, because
// its init statuses do not line up with the spec (T7).
func wouldRefuse(p *nodePod, old *v1.PodStatus) bool {
	return p.spec.Spec.RestartPolicy != v1.RestartPolicyAlways && !podrules.CouldRestartAll(p.spec) && podrules.InitMismatch(p.spec, old) != nil
}

// beginLife prepares the kubelet for a report with which a static pod begins another life, and
// returns what is left of the life before: not its end. beginLife returns nil if none begins (M0d).
func (r *run) beginLife(p *nodePod, old, next *v1.PodStatus) *v1.PodStatus {
	k := r.kubelet()
	kept := p.hasCached(k)
	over := kept && p.finished || !kept && podstatus.IsTerminal(old.Phase)
	if !p.static || !over {
		return nil
	}
	if old.Phase == next.Phase && podrules.CheckTransitions(p.spec, old, next) == nil {
		return nil // nothing depends on it
	}
	k.tally.count(correctM0d)
	if kept {
		// As the kubelet itself does before it runs such a pod again. What it has to send is sent
		// first, and then it must forget the version that it has sent, which takes a tick.
		r.catchUp()
		resized := p.spec.DeepCopy()
		resized.Status.Conditions = k.resizeConditions(p.uid())
		r.forget(theKubelet, p)
		r.sleep(11 * time.Second)
		k.restoreResize(resized)
	}
	earlier := old.DeepCopy()
	earlier.Phase, earlier.Reason, earlier.Message = "", "", ""
	earlier.ContainerStatuses, earlier.InitContainerStatuses, earlier.EphemeralContainerStatuses = nil, nil, nil
	return earlier
}

// terminateOnKubelet passes the end of a pod to the kubelet's manager.
func (r *run) terminateOnKubelet(p *nodePod) {
	k := r.kubelet()
	old := r.before(p, theKubelet)
	lenient := wouldRefuse(p, old)
	if lenient {
		k.tally.count(correctT7)
	}
	adapt := func(pod *v1.Pod) *v1.Pod {
		if lenient {
			return alwaysRestarting(pod)
		}
		return pod
	}
	pod := r.held(p, theKubelet).DeepCopy()
	cached, kept := k.cached(p.uid())
	switch {
	case kept:
		if unready, ok := unreadyAtEnd(p, pod, cached); ok {
			k.tally.count(correctK7)
			unchanged := pod.DeepCopy()
			unchanged.Generation = cached.ObservedGeneration
			k.report(adapt(unchanged), *unready)
		}
		if r.missesStart(p) {
			k.tally.count(correctK3)
			pod.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
		}
	case p.static && podstatus.IsTerminal(old.Phase): // the manifest has no phase
		k.tally.count(correctX7)
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = old.Phase, old.Reason, old.Message
	default:
		if unready, ok := unreadyAtEnd(p, pod, &pod.Status); ok {
			k.tally.count(correctK7)
			pod.Status = *unready
		}
	}
	k.terminate(adapt(pod))
}

// unreadyOnKubelet makes a pod unready in the kubelet's API that another writer has ended as the
// cache says that it has: the kubelet sees no difference then, and leaves it ready (X6). Without
// its manifest a static pod has no mirror to write to (M0).
func (r *run) unreadyOnKubelet(p *nodePod) {
	k := r.kubelet()
	cached, kept := k.cached(p.uid())
	pod := k.server().current(p.name)
	if !kept || pod == nil || p.forgotten || !p.static && pod.UID != p.uid() || pod.Status.Phase != cached.Phase || !saysReady(cached) {
		return
	}
	if unready, ok := unreadyAtEnd(p, r.held(p, theKubelet), &pod.Status); ok {
		k.tally.count(correctX6)
		p.readyAtEnd = true
		k.server().change(p.name, func(pod *v1.Pod) { pod.Status.Conditions = unready.Conditions })
	}
}

// unreadyAtEnd returns the status of a pod that is about to end with readiness False, if the
// status says that it is ready (K7).
func unreadyAtEnd(p *nodePod, pod *v1.Pod, status *v1.PodStatus) (*v1.PodStatus, bool) {
	phase := status.Phase
	if !p.static && !podstatus.IsTerminal(phase) {
		phase = v1.PodFailed
	}
	if !podstatus.IsTerminal(phase) || !saysReady(status) {
		return nil, false
	}
	status = status.DeepCopy()
	for _, t := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		c := stamped(podrules.TerminalCondition(pod, t, phase))
		if seen := podstatus.FindCondition(status.Conditions, t); seen != nil && seen.Status == c.Status {
			c.LastTransitionTime = seen.LastTransitionTime
		}
		status.Conditions = withCondition(status.Conditions, c)
	}
	return status, true
}

// cutMessages makes the termination messages valid and cuts them between two runes (N3). It
// reports whether the kubelet would have done otherwise.
func cutMessages(p *nodePod, status *v1.PodStatus) (did bool) {
	limit := kubecontainer.MaxPodTerminationMessageLogLength / len(p.containers)
	cut := func(state *v1.ContainerState) {
		if state.Terminated == nil {
			return
		}
		text := string([]rune(state.Terminated.Message)) // each stray byte becomes U+FFFD
		end := min(limit, len(text))
		for end < len(text) && end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		theirs := state.Terminated.Message
		did = did || theirs[:min(limit, len(theirs))] != text[:end]
		state.Terminated.Message = text[:end]
	}
	for _, list := range [][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			cut(&list[i].State)
			cut(&list[i].LastTerminationState)
		}
	}
	return did
}
