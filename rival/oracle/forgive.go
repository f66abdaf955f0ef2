package oracle

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

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
	k.ExtendedResourceClaimStatus = d.ExtendedResourceClaimStatus
	k.NodeAllocatableResourceClaimStatuses = d.NodeAllocatableResourceClaimStatuses
	sortConditions(before.Conditions)
	sortConditions(k.Conditions)
	sortConditions(d.Conditions)
	return did || !equality.Semantic.DeepEqual(before, k)
}

// takeUncompared gives k the times and the generation of d if the two are equal otherwise.
func takeUncompared(k, d *v1.PodCondition) bool {
	if *k == *d || k.Status != d.Status || k.Reason != d.Reason || k.Message != d.Message || !podstatus.IsOwned(k.Type) && !podstatus.IsShared(k.Type) {
		return false
	}
	*k = *d
	return true
}

func isTerminalReason(reason string) bool {
	return reason == podstatus.ReasonPodFailed || reason == podstatus.ReasonPodCompleted
}

// ended says that the pod has ended in the cache, or in the API, where the phase may be
// withheld, or that it was deleted for that.
func (v *View) ended() bool {
	return v.Deleted || v.Cached != nil && podstatus.IsTerminal(v.Cached.Phase) || v.API != nil && podstatus.IsTerminal(v.API.Status.Phase)
}
