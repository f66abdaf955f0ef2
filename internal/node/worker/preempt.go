package worker

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/podstatus"
)

// A critical pod that does not fit makes others leave, as with the kubelet, and starts when
// they have ended.

const (
	reasonPreempting  = "Preempting"
	messagePreempting = "Preempted in order to admit critical pod"
	messagePreempted  = "Pod was preempted by Kubelet to accommodate a critical pod."

	ownGrace = time.Duration(math.MaxInt64) // the pod's own grace is shorter
)

// preempt makes room for a critical pod that was rejected for lack of a resource. It
// reports whether the pod has to wait for others to end.
func (w *Workers) preempt(pod *v1.Pod, active []*v1.Pod, r *fit.Rejection) (wait bool) {
	if r.Shortage == nil || !podstatus.IsCritical(pod) {
		return false
	}
	leaving := w.leaving()
	staying := slices.DeleteFunc(slices.Clone(active), func(other *v1.Pod) bool { return leaving[other.UID] })
	if len(staying) < len(active) {
		again := w.opts.Admit(pod, staying)
		if again == nil {
			return true // the pods that leave make enough room
		}
		if r = again; r.Shortage == nil {
			return false
		}
	}
	chosen := fit.Victims(pod, staying, r.Shortage)
	if chosen == nil {
		w.opts.Logger.Error("no pods can make room for a critical pod", "message", r.Message, "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID)
		return false
	}
	for _, victim := range chosen {
		w.opts.Logger.Info("pod preempted for a critical one", "pod", victim.Namespace+"/"+victim.Name, "uid", victim.UID, "for", pod.Namespace+"/"+pod.Name)
		w.opts.Recorder.Event(victim, "", v1.EventTypeWarning, reasonPreempting, messagePreempting)
		w.Evict(victim.UID, Eviction{
			Grace: ownGrace, Reason: reasonPreempting, Message: messagePreempting,
			Condition: &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonTerminationByKubelet, Message: messagePreempted},
		})
	}
	return true
}

// leaving are the pods that end already.
func (w *Workers) leaving() map[types.UID]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[types.UID]bool{}
	for uid, p := range w.pods {
		if p.inbox.stage == terminating || p.inbox.evicted != nil || p.inbox.gone || p.inbox.pod.DeletionTimestamp != nil {
			found[uid] = true
		}
	}
	return found
}
