package oracle

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/statusd/statusd/podstatus"
)

// forgiveTerminatedReady: of a terminated pod statusd says that it is not ready because it
// has ended; the kubelet says that it is ready, or has found out later. What the next report
// says of it is news to one of the two only. While the phase is withheld this shows in the
// API too.
func forgiveTerminatedReady(c *Case) bool {
	if !c.Pod.terminated {
		return false
	}
	if k, d := c.Kubelet.API, c.Statusd.API; k != nil && d != nil && saysReady(&k.Status) && !saysReady(&d.Status) {
		c.part("K7 unready")
	}
	answers := false
	if c.Pod.stillReady {
		answers = c.takeAnswers()
		answers = c.takeStored() || answers
	}
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		ready, did := saysReady(k), false
		for _, t := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
			theirs, ours := podstatus.FindCondition(k.Conditions, t), podstatus.FindCondition(d.Conditions, t)
			if (c.Pod.removed || c.Pod.stillReady) && theirs != nil && ours != nil && sameButTime(theirs, ours) &&
				theirs.LastTransitionTime.Before(&ours.LastTransitionTime) == (ours.Status == v1.ConditionTrue) {
				theirs.LastTransitionTime, did = ours.LastTransitionTime, true // ready again, or unready before
				continue
			}
			if ours == nil || ours.Status != v1.ConditionFalse || !isTerminalReason(ours.Reason) {
				continue
			}
			later := theirs != nil && theirs.Status == ours.Status && theirs.Reason == ours.Reason && *theirs != *ours && !theirs.LastTransitionTime.Before(&ours.LastTransitionTime)
			if ready || later {
				k.Conditions = withCondition(k.Conditions, *ours)
				did = true
			}
		}
		return did
	}) || answers
}

func isTerminalReason(reason string) bool {
	return reason == podstatus.ReasonPodFailed || reason == podstatus.ReasonPodCompleted
}

// forgiveUnseenStart: only regular containers differ, which the kubelet left as they were
// and statusd says it could not find. What is reported after that may be refused by one and
// not by the other.
func forgiveUnseenStart(c *Case) bool {
	if !c.Pod.unseenStart {
		return false
	}
	if c.Pod.reportedSince {
		*c.Kubelet = *c.Statusd
		return true
	}
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		if len(k.ContainerStatuses) != len(d.ContainerStatuses) {
			return false
		}
		did := false
		for i := range k.ContainerStatuses {
			theirs, ours := &k.ContainerStatuses[i], &d.ContainerStatuses[i]
			if theirs.State.Terminated == nil && ours.State.Terminated != nil &&
				ours.State.Terminated.Reason == podstatus.ReasonContainerStatusUnknown {
				theirs.State, did = ours.State, true
			}
		}
		return did
	})
}

// forgiveFinalPhase: statusd holds on to a terminal phase that a report, or after somebody
// else's write the kubelet's next look, would take from the pod. Only the phase, its
// explanation, readiness and what calls answer differ; or the pod could be deleted with that
// phase.
func forgiveFinalPhase(c *Case) bool {
	if !c.Pod.revived && !c.Pod.killed {
		return false
	}
	if c.Pod.static && !c.Pod.killed && !c.Pod.expected.over {
		// In another life of a static pod the end of an earlier one does not count. That the life
		// began may have been news to statusd only.
		return c.takeAnswers()
	}
	if c.Statusd.Deleted && !c.Kubelet.Deleted && c.Kubelet.API != nil && !podstatus.IsTerminal(c.Kubelet.API.Status.Phase) {
		*c.Kubelet = *c.Statusd
		return true
	}
	if !c.Statusd.ended() && !c.Pod.removed {
		return false
	}
	phase, answers := c.statusPairs(takePhase), c.takeAnswers()
	return c.takeStored() || phase || answers
}

// ended says that the pod has ended in the cache, or in the API, where the phase may be
// withheld, or that it was deleted for that.
func (v *View) ended() bool {
	return v.Deleted || v.Cached != nil && podstatus.IsTerminal(v.Cached.Phase) || v.API != nil && podstatus.IsTerminal(v.API.Status.Phase)
}

// takePhase gives k what d says of the phase and of what depends on it: a pod that has ended
// is not ready.
func takePhase(k, d *v1.PodStatus) bool {
	before := k.DeepCopy()
	k.Phase, k.Reason, k.Message = d.Phase, d.Reason, d.Message
	for _, t := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		if ours := podstatus.FindCondition(d.Conditions, t); ours != nil && ours.Status == v1.ConditionFalse {
			k.Conditions = withCondition(k.Conditions, *ours)
		}
	}
	if equality.Semantic.DeepEqual(before, k) && sameDisruption(k, d) {
		return false
	}
	takeDisruption(k, d)
	return true
}

func sameDisruption(k, d *v1.PodStatus) bool {
	return equality.Semantic.DeepEqual(podstatus.FindCondition(k.Conditions, v1.DisruptionTarget), podstatus.FindCondition(d.Conditions, v1.DisruptionTarget))
}

// takeDisruption gives k what d says of the reason of the end: it is sent together with a
// terminal phase, and so not at the same times.
func takeDisruption(k, d *v1.PodStatus) {
	k.Conditions = slices.DeleteFunc(k.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.DisruptionTarget })
	if c := podstatus.FindCondition(d.Conditions, v1.DisruptionTarget); c != nil {
		k.Conditions = append(k.Conditions, *c)
	}
	sortConditions(k.Conditions)
	sortConditions(d.Conditions)
}

// forgiveStaticRuns: a static pod that could run had ended in the kubelet's API, and not in
// statusd's. Only the phase and the conditions that go with it differ for as long as it could
// run, or if its status was removed before it had stopped; once it has stopped, only their times
// do, also in a cache that was stored on top of them.
func forgiveStaticRuns(c *Case) bool {
	if !c.Pod.early || c.Kubelet.API == nil || c.Statusd.API == nil {
		return false
	}
	k, d := &c.Kubelet.API.Status, &c.Statusd.API.Status
	did := (c.Pod.mayRun || c.Statusd.Cached == nil) && takeEnd(k, d)
	if !sameDisruption(k, d) { // what explains the end is sent with the end, and not after it
		takeDisruption(k, d)
		did = true
	}
	return c.takeStored() || did
}

// forgiveAnotherLife: the kubelet refuses what statusd takes for another life of a static pod.
func forgiveAnotherLife(c *Case) bool {
	if !c.Pod.anotherLife {
		return false
	}
	*c.Kubelet = *c.Statusd
	return true
}

// takeEnd gives k what d says of the phase, and the conditions that depend on it.
func takeEnd(k, d *v1.PodStatus) bool {
	before := k.DeepCopy()
	k.Phase, k.Reason, k.Message = d.Phase, d.Reason, d.Message
	k.Conditions = d.Conditions
	return !equality.Semantic.DeepEqual(before, k)
}
