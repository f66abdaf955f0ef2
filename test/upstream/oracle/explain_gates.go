package oracle

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// explainGates: a probe result made the pod ready, or not, by a readiness gate that the
// kubelet had not stored a change of. Only Ready differs, because of the gate, or since when;
// and a report that follows is a change for the kubelet alone, which stores what comes with it.
func explainGates(c *Case) bool {
	if !c.Pod.staleGate {
		return false
	}
	answers, stored := c.takeAnswers(), c.takeStored()
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
	}) || answers || stored
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
	isOthers := func(c v1.PodCondition) bool { return !podstatus.IsOwned(c.Type) && !podrules.IsShared(c.Type) }
	k.Conditions = slices.DeleteFunc(k.Conditions, isOthers)
	for _, c := range d.Conditions {
		if isOthers(c) {
			k.Conditions = append(k.Conditions, c)
		}
	}
	k.ResourceClaimStatuses = d.ResourceClaimStatuses
	k.ExtendedResourceClaimStatus = d.ExtendedResourceClaimStatus
	k.NodeAllocatableResourceClaimStatuses = d.NodeAllocatableResourceClaimStatuses
	sortConditions(before.Conditions)
	sortConditions(k.Conditions)
	sortConditions(d.Conditions)
	return did || !equality.Semantic.DeepEqual(before, k)
}

// takeUncompared gives k the times and the generation of d if the two are equal otherwise.
func takeUncompared(k, d *v1.PodCondition) bool {
	if *k == *d || k.Status != d.Status || k.Reason != d.Reason || k.Message != d.Message || !podstatus.IsOwned(k.Type) && !podrules.IsShared(k.Type) {
		return false
	}
	*k = *d
	return true
}
