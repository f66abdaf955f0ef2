package oracle

import (
	"slices"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

// statusPairs calls f for the statuses that both sides have: those in the API, and those
// in the cache. It reports whether f did for any.
func (c *Case) statusPairs(f func(k, d *v1.PodStatus) bool) bool {
	did := false
	if c.Kubelet.API != nil && c.Statusd.API != nil {
		did = f(&c.Kubelet.API.Status, &c.Statusd.API.Status)
	}
	if c.Kubelet.Cached != nil && c.Statusd.Cached != nil {
		did = f(c.Kubelet.Cached, c.Statusd.Cached) || did
	}
	return did
}

// conditionPairs calls f for the conditions of a type that both lists have once.
func conditionPairs(k, d []v1.PodCondition, f func(k, d *v1.PodCondition) bool) bool {
	did := false
	for i := range k {
		if other := podstatus.FindCondition(d, k[i].Type); other != nil && podstatus.FindCondition(k, k[i].Type) == &k[i] {
			did = f(&k[i], other) || did
		}
	}
	return did
}

// sameButTime says that two conditions differ in their transition time and in nothing else.
func sameButTime(k, d *v1.PodCondition) bool {
	if k.LastTransitionTime.Equal(&d.LastTransitionTime) {
		return false
	}
	other := *d
	other.LastTransitionTime = k.LastTransitionTime
	return equality.Semantic.DeepEqual(k, &other)
}

// forgiveOrder: the types are the same in another order. A status that is stored again after
// its removal may take the API's order over into the cache.
func forgiveOrder(c *Case) bool {
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		before, after := typesOf(k.Conditions), typesOf(d.Conditions)
		if slices.Equal(before, after) {
			return false
		}
		slices.Sort(before)
		slices.Sort(after)
		if !slices.Equal(before, after) {
			return false
		}
		sortConditions(k.Conditions)
		sortConditions(d.Conditions)
		return true
	})
}

func typesOf(list []v1.PodCondition) []v1.PodConditionType {
	var types []v1.PodConditionType
	for i := range list {
		types = append(types, list[i].Type)
	}
	return types
}

func sortConditions(list []v1.PodCondition) {
	slices.SortStableFunc(list, func(a, b v1.PodCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
}

// forgiveRunes: up to the cut the texts are the same, byte for byte once both are valid,
// and statusd's ends less than a rune before the kubelet's. On top of what the API made of
// it the same text is news to the kubelet.
func forgiveRunes(c *Case) bool {
	answers := c.Pod.halved && c.takeAnswers()
	forgive := func(k, d *v1.ContainerState) bool {
		if k.Terminated == nil || d.Terminated == nil || k.Terminated.Message == d.Terminated.Message {
			return false
		}
		theirs, ours := k.Terminated.Message, d.Terminated.Message
		valid := string([]rune(theirs)) // as JSON carries it: each stray byte is replaced
		halved, cut := strings.CutPrefix(valid, ours)
		if !utf8.ValidString(ours) || !cut || strings.Trim(halved, string(utf8.RuneError)) != "" {
			return false
		}
		k.Terminated.Message = ours
		return true
	}
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		did := false
		for _, lists := range [][2][]v1.ContainerStatus{
			{k.InitContainerStatuses, d.InitContainerStatuses},
			{k.ContainerStatuses, d.ContainerStatuses},
			{k.EphemeralContainerStatuses, d.EphemeralContainerStatuses},
		} {
			if len(lists[0]) != len(lists[1]) {
				continue
			}
			for i := range lists[0] {
				did = forgive(&lists[0][i].State, &lists[1][i].State) || did
				did = forgive(&lists[0][i].LastTerminationState, &lists[1][i].LastTerminationState) || did
			}
		}
		return did
	}) || answers
}

// hasReplacedRune says that a termination message has been through JSON with bytes in it that
// are no rune.
func hasReplacedRune(status *v1.PodStatus) bool {
	replaced := func(state *v1.ContainerState) bool {
		return state.Terminated != nil && strings.ContainsRune(state.Terminated.Message, utf8.RuneError)
	}
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses)
	return slices.ContainsFunc(all, func(s v1.ContainerStatus) bool { return replaced(&s.State) || replaced(&s.LastTerminationState) })
}

// forgiveSetBack: statusd's time is later, and the kubelet's would be a step back for readers
// of the API: another writer gave the condition a later time, or another status in between. It
// is in the cache too if the status was stored again on top of the API's. The times of resize
// conditions are the reporter's, and may be older than before as well.
func forgiveSetBack(c *Case) bool {
	server := c.sides[theStatusd].server()
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		return conditionPairs(k.Conditions, d.Conditions, func(k, d *v1.PodCondition) bool {
			if !sameButTime(k, d) || d.LastTransitionTime.Before(&k.LastTransitionTime) {
				return false
			}
			if podstatus.HasTransitionTime(k.Type) && !server.wouldStepBack(c.Pod.name, k, d) {
				return false
			}
			k.LastTransitionTime = d.LastTransitionTime
			return true
		})
	})
}

// forgiveDuplicate: a report had two conditions of one type. While the kubelet holds them it
// cannot make a patch, and its API has not heard of the pod since; in its cache only the first
// of them has a time. When they are gone again, a status in between was sent by statusd only:
// it has left a later time, and if the phase is withheld now, another phase.
func forgiveDuplicate(c *Case) bool {
	if !c.Pod.duplicated {
		return false
	}
	unsent := c.Kubelet.Cached == nil || hasDuplicate(c.Kubelet.Cached.Conditions)
	if c.Pod.removed || unsent && !equality.Semantic.DeepEqual(c.Kubelet.API, c.Statusd.API) {
		*c.Kubelet = *c.Statusd
		c.part("E7 duplicates")
		return true
	}
	did := false
	if k, d := c.Kubelet.API, c.Statusd.API; k != nil && d != nil {
		did = conditionPairs(k.Status.Conditions, d.Status.Conditions, func(k, d *v1.PodCondition) bool {
			later := sameButTime(k, d) && k.LastTransitionTime.Before(&d.LastTransitionTime)
			if later {
				k.LastTransitionTime = d.LastTransitionTime
			}
			return later
		})
		if c.Kubelet.ended() && k.Status.Phase != d.Status.Phase && !podstatus.IsTerminal(k.Status.Phase) && !podstatus.IsTerminal(d.Status.Phase) {
			k.Status.Phase, k.Status.Reason, k.Status.Message, did = d.Status.Phase, d.Status.Reason, d.Status.Message, true
		}
	}
	if k, d := c.Kubelet.Cached, c.Statusd.Cached; k != nil && d != nil && len(k.Conditions) == len(d.Conditions) {
		for i := range k.Conditions {
			theirs, ours := &k.Conditions[i], &d.Conditions[i]
			if podstatus.FindCondition(k.Conditions, theirs.Type) != theirs && sameButTime(theirs, ours) {
				theirs.LastTransitionTime, did = ours.LastTransitionTime, true
			}
		}
	}
	return did
}

// hasDuplicate says that two conditions are of one type.
func hasDuplicate(list []v1.PodCondition) bool {
	types := typesOf(list)
	slices.Sort(types)
	return len(slices.Compact(types)) < len(list)
}

// forgiveDisruptionTime: only the time of DisruptionTarget differs, which both sides set
// when they send it, at their next look at a pod whose containers have stopped.
func forgiveDisruptionTime(c *Case) bool {
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		return conditionPairs(k.Conditions, d.Conditions, func(k, d *v1.PodCondition) bool {
			if k.Type != v1.DisruptionTarget || !sameButTime(k, d) {
				return false
			}
			k.LastTransitionTime = d.LastTransitionTime
			return true
		})
	})
}

// forgiveChurn: a report said both that the pod has ended and that it is ready. Only the
// times of the two readiness conditions differ, the kubelet's being the later ones.
func forgiveChurn(c *Case) bool {
	if !c.Pod.readyAtEnd {
		return false
	}
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		return conditionPairs(k.Conditions, d.Conditions, func(k, d *v1.PodCondition) bool {
			if !isReadiness(k.Type) || !sameButTime(k, d) || k.LastTransitionTime.Before(&d.LastTransitionTime) {
				return false
			}
			k.LastTransitionTime = d.LastTransitionTime
			return true
		})
	})
}

func isReadiness(t v1.PodConditionType) bool { return t == v1.PodReady || t == v1.ContainersReady }

func saysReady(status *v1.PodStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c v1.PodCondition) bool {
		return isReadiness(c.Type) && c.Status == v1.ConditionTrue
	})
}

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

// forgiveVersionReset: the statuses in the API are equal as the kubelet compares them, and
// differ in times or generations of conditions.
func forgiveVersionReset(c *Case) bool {
	if !c.Pod.removed || c.Kubelet.API == nil || c.Statusd.API == nil {
		return false
	}
	return conditionPairs(c.Kubelet.API.Status.Conditions, c.Statusd.API.Status.Conditions, takeUncompared)
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

// forgiveFrozen: the kubelet's cache is as it was when it began to refuse, but for the time
// that sending a DisruptionTarget leaves there (X8), or was removed.
func forgiveFrozen(c *Case) bool {
	if !c.Pod.refused || !c.Pod.removed && !equality.Semantic.DeepEqual(withoutDisruptionTime(c.Kubelet.Cached), withoutDisruptionTime(c.Pod.frozen)) {
		return false
	}
	*c.Kubelet = *c.Statusd
	return true
}

func withoutDisruptionTime(status *v1.PodStatus) *v1.PodStatus {
	status = status.DeepCopy()
	if status != nil {
		if c := podstatus.FindCondition(status.Conditions, v1.DisruptionTarget); c != nil {
			c.LastTransitionTime = metav1.Time{}
		}
	}
	return status
}

// forgiveFinalPhase: statusd holds on to a terminal phase that a report, or after somebody
// else's write the kubelet's next look, would take from the pod. Only the phase, its
// explanation, readiness and what calls answer differ; or the pod could be deleted with that
// phase.
func forgiveFinalPhase(c *Case) bool {
	if !c.Pod.revived && !c.Pod.killed {
		return false
	}
	if c.Pod.static && c.Pod.removed && !c.Pod.killed {
		return false // what a manifest wants may run again
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

// takeAnswers gives the kubelet's calls the answers of statusd's, and its statuses what was
// stored with a report that changed something for one of the two only.
func (c *Case) takeAnswers() bool {
	if slices.Equal(c.Kubelet.Calls, c.Statusd.Calls) {
		return false
	}
	c.Kubelet.Calls = c.Statusd.Calls
	c.takeStored()
	return true
}

// takeStored gives the kubelet's statuses what statusd's say in what is stored with a report,
// but no reason to store one: times and generations of conditions (E2), and in the cache what
// is not the node's and never sent (E3, E4).
func (c *Case) takeStored() bool {
	did := c.statusPairs(func(k, d *v1.PodStatus) bool { return conditionPairs(k.Conditions, d.Conditions, takeUncompared) })
	k, d := c.Kubelet.Cached, c.Statusd.Cached
	if k == nil || d == nil {
		return did
	}
	before := k.DeepCopy()
	isOthers := func(c v1.PodCondition) bool { return !podstatus.IsOwned(c.Type) && !podstatus.IsShared(c.Type) }
	k.Conditions = slices.DeleteFunc(k.Conditions, isOthers)
	for _, c := range d.Conditions {
		if isOthers(c) {
			k.Conditions = append(k.Conditions, c)
		}
	}
	k.ResourceClaimStatuses = d.ResourceClaimStatuses
	sortConditions(before.Conditions)
	sortConditions(k.Conditions)
	sortConditions(d.Conditions)
	return did || !equality.Semantic.DeepEqual(before, k)
}

// takeUncompared gives k the times and the generation of d if the two are equal otherwise.
func takeUncompared(k, d *v1.PodCondition) bool {
	if *k == *d || k.Status != d.Status || k.Reason != d.Reason || k.Message != d.Message || !podstatus.IsOwned(k.Type) {
		return false
	}
	*k = *d
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
// run; once it has stopped, only their times do, also in a cache that was stored on top of them.
func forgiveStaticRuns(c *Case) bool {
	if !c.Pod.early || c.Kubelet.API == nil || c.Statusd.API == nil {
		return false
	}
	k, d := &c.Kubelet.API.Status, &c.Statusd.API.Status
	did := c.Pod.mayRun && takeEnd(k, d)
	if !sameDisruption(k, d) { // what explains the end is sent with the end, and not after it
		takeDisruption(k, d)
		did = true
	}
	return c.takeStored() || did
}

// takeEnd gives k what d says of the phase, and the conditions that depend on it.
func takeEnd(k, d *v1.PodStatus) bool {
	before := k.DeepCopy()
	k.Phase, k.Reason, k.Message = d.Phase, d.Reason, d.Message
	k.Conditions = d.Conditions
	return !equality.Semantic.DeepEqual(before, k)
}

// forgiveGates: a probe result made the pod ready, or not, by a readiness gate that the
// kubelet had not stored a change of. Only Ready differs, because of the gate, or since when.
func forgiveGates(c *Case) bool {
	if !c.Pod.staleGate {
		return false
	}
	did := c.takeAnswers()
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		theirs, ours := podstatus.FindCondition(k.Conditions, v1.PodReady), podstatus.FindCondition(d.Conditions, v1.PodReady)
		if theirs == nil || ours == nil || *theirs == *ours {
			return false
		}
		gated := theirs.Reason == podstatus.ReasonReadinessGatesNotReady || ours.Reason == podstatus.ReasonReadinessGatesNotReady
		if !gated && !sameButTime(theirs, ours) {
			return false
		}
		*theirs = *ours
		return true
	}) || did
}

// forgiveWiped: the kubelet forgot a status that statusd kept, while the name was another
// pod's in the API.
func forgiveWiped(c *Case) bool {
	if !c.Pod.wiped {
		return false
	}
	*c.Kubelet = *c.Statusd
	return true
}

// forgiveForgotten: the static pod has no manifest any more. What the mirror says differs,
// and what is stored again on top of it.
func forgiveForgotten(c *Case) bool {
	if !c.Pod.forgotten {
		return false
	}
	*c.Kubelet = *c.Statusd
	return true
}

// forgiveGone: statusd has no status any more of a pod that is gone from the API, or one that
// was reported since, on top of nothing.
func forgiveGone(c *Case) bool {
	if !c.Pod.doneWith || c.Kubelet.Cached == nil || c.Statusd.API != nil || c.Kubelet.API != nil {
		return false
	}
	c.Kubelet.Cached, c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Cached, c.Statusd.Resize, c.Statusd.Calls
	return true
}

// forgiveDeletedFirst: one side had deleted the pod when somebody else did, and the other had
// not: the kubelet because no tick came in between, statusd because the watch had not shown the
// deletion yet, which the kubelet saw when it read. Or there was one more report after statusd's
// deletion, which for the kubelet went with the pod.
func forgiveDeletedFirst(c *Case) bool {
	if c.Pod.outlived && c.Statusd.Deleted && c.Kubelet.Deleted {
		c.Kubelet.Cached, c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Cached, c.Statusd.Resize, c.Statusd.Calls
		return true
	}
	if !c.Pod.vanished || c.Statusd.Deleted == c.Kubelet.Deleted || c.Statusd.API != nil || c.Kubelet.API != nil {
		return false
	}
	if c.Kubelet.Deleted && c.Kubelet.Cached == nil { // it forgets what it has deleted
		c.Kubelet.Cached, c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Cached, c.Statusd.Resize, c.Statusd.Calls
	}
	c.Kubelet.Deleted = c.Statusd.Deleted
	return true
}

// forgiveBackfill: after resize conditions were read back, statusd's are other ones than the
// kubelet's, or the same with older times.
func forgiveBackfill(c *Case) bool {
	if !c.Pod.backfilled || equality.Semantic.DeepEqual(c.Kubelet.Resize, c.Statusd.Resize) && slices.Equal(c.Kubelet.Calls, c.Statusd.Calls) {
		return false
	}
	c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Resize, c.Statusd.Calls
	return true
}

// forgiveResizeOrphans: the kubelet held on to resize conditions that statusd has dropped.
func forgiveResizeOrphans(c *Case) bool {
	if !c.Pod.leftResize {
		return false
	}
	c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Resize, c.Statusd.Calls
	return true
}
