package worker

import (
	"cmp"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// A critical pod that does not fit makes others leave, as with the kubelet, and starts when
// they have ended.

const (
	reasonPreempting  = "Preempting"
	messagePreempting = "Preempted in order to admit critical pod"
	messagePreempted  = "Pod was preempted by Kubelet to accommodate a critical pod."

	ownGrace = time.Duration(math.MaxInt64) // that of the pod is shorter
)

// preempt makes room for a critical pod that was rejected for lack of a resource. It
// reports whether the pod has to wait for others to end.
func (w *Workers) preempt(pod *v1.Pod, active []*v1.Pod, r *Rejection) (wait bool) {
	if r.Shortage == nil || !podstatus.IsCritical(pod) {
		return false
	}
	leaving := w.leaving()
	staying := slices.DeleteFunc(slices.Clone(active), func(other *v1.Pod) bool { return leaving[other.UID] })
	if len(staying) < len(active) {
		again := w.opts.Admit(pod, staying)
		if again == nil {
			return true // those that leave make enough room
		}
		if r = again; r.Shortage == nil {
			return false
		}
	}
	chosen := victims(pod, staying, r.Shortage)
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
		if p.mail.stage == terminating || p.mail.evicted != nil || p.mail.gone || p.mail.pod.DeletionTimestamp != nil {
			found[uid] = true
		}
	}
	return found
}

// victims are the pods that have to leave so that a pod fits, nil if that cannot be. Those
// that have asked for nothing go first and guaranteed ones last; beyond that as few as
// possible, and the smallest that are enough.
func victims(pod *v1.Pod, active []*v1.Pod, short *Shortage) []*v1.Pod {
	need := short.Requested - (short.Capacity - short.Used)
	share := func(p *v1.Pod) int64 {
		if short.Resource == v1.ResourcePods {
			return 1
		}
		return amount(short.Resource, Requests(p)[short.Resource])
	}
	byClass := map[v1.PodQOSClass][]*v1.Pod{}
	for _, other := range active {
		if mayPreempt(pod, other) && share(other) > 0 {
			class := podstatus.QOSClass(other)
			byClass[class] = append(byClass[class], other)
		}
	}
	total := func(pods []*v1.Pod) (sum int64) {
		for _, p := range pods {
			sum += share(p)
		}
		return sum
	}
	low, middle, high := byClass[v1.PodQOSBestEffort], byClass[v1.PodQOSBurstable], byClass[v1.PodQOSGuaranteed]
	if total(low)+total(middle)+total(high) < need {
		return nil
	}
	// From the top: what cannot be had below has to come from here.
	fromHigh := fewest(high, need-total(low)-total(middle), share)
	fromMiddle := fewest(middle, need-total(low)-total(fromHigh), share)
	fromLow := fewest(low, need-total(fromMiddle)-total(fromHigh), share)
	return slices.Concat(fromLow, fromMiddle, fromHigh)
}

// fewest picks pods that have at least so much together: the smallest that is enough alone,
// or else the largest and then on.
func fewest(pods []*v1.Pod, need int64, share func(*v1.Pod) int64) []*v1.Pod {
	left := slices.Clone(pods)
	slices.SortStableFunc(left, func(a, b *v1.Pod) int { return cmp.Compare(share(a), share(b)) })
	var picked []*v1.Pod
	for need > 0 && len(left) > 0 {
		i := slices.IndexFunc(left, func(p *v1.Pod) bool { return share(p) >= need })
		if i < 0 {
			i = len(left) - 1
		}
		picked = append(picked, left[i])
		need -= share(left[i])
		left = slices.Delete(left, i, i+1)
	}
	return picked
}

// mayPreempt reports whether a pod has to leave for a critical one.
func mayPreempt(critical, other *v1.Pod) bool {
	if !podstatus.IsCritical(other) {
		return true
	}
	return critical.Spec.Priority != nil && other.Spec.Priority != nil && *critical.Spec.Priority > *other.Spec.Priority
}
