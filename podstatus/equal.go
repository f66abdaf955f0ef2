package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Equal reports whether two normalised statuses (E6) say the same, as far as this node has a
// say: owned and shared conditions are compared as a set by status, reason and message
// (E1, E2, E7), foreign ones and the three claim-status fields not at all (E3, E4), and
// everything else by meaning: nil is empty, quantities count by value, times by instant
// (E5). It is written out field by field because it sits on the path of every report;
// fields_test.go fails when the API grows a field that is missing here. It allocates nothing.
func Equal(a, b *v1.PodStatus) bool { return Ownership{}.Equal(a, b) }

// Equal is [Equal] by this table.
func (o Ownership) Equal(a, b *v1.PodStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration &&
		samePhase(a, b) &&
		asIs.sameTime(orZero(a.StartTime), orZero(b.StartTime)) &&
		sameStoredAddresses(a, b) &&
		sameScalars(a, b) &&
		sameUnwritten(a, b) &&
		o.sameConditions(a.Conditions, b.Conditions) &&
		asIs.sameStatuses(a.ContainerStatuses, b.ContainerStatuses) &&
		asIs.sameStatuses(a.InitContainerStatuses, b.InitContainerStatuses) &&
		asIs.sameStatuses(a.EphemeralContainerStatuses, b.EphemeralContainerStatuses)
}

// Unchanged reports whether storing incoming over cached would leave an equal status: whether
// Equal(cached, Next(pod, cached, incoming)) with incoming's observed generation set to the
// pod's (U2). Cached is normalised; incoming is taken as the reporter built it, unsorted,
// with fractions of seconds and long messages, and is not copied. When the answer is yes,
// which is nearly always, nothing is allocated.
func Unchanged(pod *v1.Pod, cached, incoming *v1.PodStatus) bool {
	return Ownership{}.Unchanged(pod, cached, incoming)
}

// Unchanged is [Unchanged] by this table.
func (o Ownership) Unchanged(pod *v1.Pod, cached, incoming *v1.PodStatus) bool {
	if pod.Generation > cached.ObservedGeneration {
		return false // G3: the observed generation would grow
	}
	if cached.StartTime.IsZero() {
		return false // U8: it would get one
	}
	return (samePhase(cached, incoming) || phaseIsFinal(cached, incoming)) &&
		sameAddresses(cached.PodIP, cached.PodIPs, incoming.PodIP, incoming.PodIPs) &&
		sameAddresses(cached.HostIP, cached.HostIPs, incoming.HostIP, incoming.HostIPs) &&
		sameUnwritten(cached, incoming) &&
		o.sameAsRaw(pod, cached, incoming)
}

// sameAsRaw compares a normalised status with a raw one in everything but observed
// generation, start time, phase and addresses, which Unchanged and NeedsReconcile see
// differently.
func (o Ownership) sameAsRaw(pod *v1.Pod, normal, raw *v1.PodStatus) bool {
	r := asReported(pod)
	return sameScalars(normal, raw) &&
		o.sameConditions(normal.Conditions, raw.Conditions) &&
		r.sameUnsorted(normal.ContainerStatuses, raw.ContainerStatuses, compareNames) &&
		r.sameUnsorted(normal.EphemeralContainerStatuses, raw.EphemeralContainerStatuses, compareNames) &&
		r.sameUnsorted(normal.InitContainerStatuses, raw.InitContainerStatuses, compareInit(pod))
}

// samePhase compares the phase and what explains it.
func samePhase(a, b *v1.PodStatus) bool {
	return a.Phase == b.Phase && sameText(a.Reason, b.Reason) && sameText(a.Message, b.Message)
}

// sameScalars compares the fields that normalising leaves alone.
func sameScalars(a, b *v1.PodStatus) bool {
	return a.QOSClass == b.QOSClass &&
		a.NominatedNodeName == b.NominatedNodeName &&
		a.Resize == b.Resize &&
		sameResourceList(a.AllocatedResources, b.AllocatedResources) &&
		sameRequirements(a.Resources, b.Resources)
}

// sameStoredAddresses compares addresses as they are.
func sameStoredAddresses(a, b *v1.PodStatus) bool {
	return a.PodIP == b.PodIP && slices.Equal(a.PodIPs, b.PodIPs) &&
		a.HostIP == b.HostIP && slices.Equal(a.HostIPs, b.HostIPs)
}

// sameConditions compares the owned and shared conditions as a set. Nearly always both
// lists name the same types in the same order, which one pass settles.
func (o Ownership) sameConditions(a, b []v1.PodCondition) bool {
	if len(a) == len(b) {
		i := 0
		for i < len(a) && a[i].Type == b[i].Type && (o.IsForeign(a[i].Type) || sameCondition(&a[i], &b[i])) {
			i++
		}
		if i == len(a) {
			return true
		}
	}
	return o.sameConditionSets(a, b)
}

// sameConditionSets finds each condition by type; of two with one type the last counts (E7).
func (o Ownership) sameConditionSets(a, b []v1.PodCondition) bool {
	unmatched := o.countTypes(b)
	for i := range a {
		if !o.isLastOfType(a, i) {
			continue
		}
		other := lastOfType(b, a[i].Type)
		if other == nil || !sameCondition(&a[i], other) {
			return false
		}
		unmatched--
	}
	return unmatched == 0
}

// sameCondition ignores the times and the observed generation (E2).
func sameCondition(a, b *v1.PodCondition) bool {
	return a.Status == b.Status && sameText(a.Reason, b.Reason) && sameText(a.Message, b.Message) && sameUnwritten(a, b)
}

// countTypes counts the owned and shared types in the list.
func (o Ownership) countTypes(list []v1.PodCondition) int {
	n := 0
	for i := range list {
		if o.isLastOfType(list, i) {
			n++
		}
	}
	return n
}

// isLastOfType says whether list[i] is the condition that counts for an owned or shared type.
func (o Ownership) isLastOfType(list []v1.PodCondition, i int) bool {
	return !o.IsForeign(list[i].Type) && lastOfType(list, list[i].Type) == &list[i]
}

func lastOfType(list []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}
