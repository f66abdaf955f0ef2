package podrules

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Equal reports whether two normalized statuses (E6) are equal in the fields that this node writes:
// owned and shared conditions are compared as a set by status, reason and message (E1, E2, E7),
// foreign conditions and the three claim-status fields are ignored (E3, E4), and all other fields
// are compared semantically: nil equals empty, quantities by value, times by instant (E5). Fields
// are compared one by one, without reflection, because every report calls Equal; fields_test.go
// fails when the API adds a field that is missing here. Equal allocates nothing.
func Equal(a, b *v1.PodStatus) bool { return Ownership{}.Equal(a, b) }

// Equal is [Equal] with this table.
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
// Equal(cached, Next(pod, cached, incoming)) with incoming's observed generation set to the pod's
// (U2). Cached is normalized; incoming is as the reporter built it, unsorted, with fractions of
// seconds and long messages, and is not copied. If the result is true, the usual case, nothing is
// allocated.
func Unchanged(pod *v1.Pod, cached, incoming *v1.PodStatus) bool {
	return Ownership{}.Unchanged(pod, cached, incoming)
}

// Unchanged is [Unchanged] with this table.
func (o Ownership) Unchanged(pod *v1.Pod, cached, incoming *v1.PodStatus) bool {
	if pod.Generation > cached.ObservedGeneration {
		return false // G3: the observed generation would grow
	}
	if cached.StartTime.IsZero() {
		return false // U8: it would get one
	}
	return (samePhase(cached, incoming) || LeavesEnd(cached, incoming)) &&
		sameAddresses(cached.PodIP, cached.PodIPs, incoming.PodIP, incoming.PodIPs) &&
		sameAddresses(cached.HostIP, cached.HostIPs, incoming.HostIP, incoming.HostIPs) &&
		sameUnwritten(cached, incoming) &&
		o.sameAsRaw(pod, cached, incoming)
}

// sameAsRaw compares a normalized status with a raw one in everything but observed
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

// sameScalars compares the fields that normalizing leaves alone.
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
		other := LastOfType(b, a[i].Type)
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

// isLastOfType reports whether list[i] is the condition that counts for an owned or shared type.
func (o Ownership) isLastOfType(list []v1.PodCondition, i int) bool {
	return !o.IsForeign(list[i].Type) && LastOfType(list, list[i].Type) == &list[i]
}

func LastOfType(list []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

// A reading says how the second status of a comparison has to be read so that it compares
// as if it had been normalized. The first one always is.
type reading struct {
	bySecond bool // times have fractions of a second to ignore (N1)
	limit    int  // bytes of a termination message that count (N2)
}

// asIs reads a status that is normalized already.
var asIs = reading{limit: math.MaxInt}

// asStored reads a status as the API stores it: no text is cut, but fractions are lost.
var asStored = reading{bySecond: true, limit: math.MaxInt}

// asReported reads a status of the pod as its reporter built it.
func asReported(pod *v1.Pod) reading {
	return reading{bySecond: true, limit: messageLimit(pod)}
}

// sameStatuses compares container statuses place by place.
func (r reading) sameStatuses(normal, other []v1.ContainerStatus) bool {
	if len(normal) != len(other) {
		return false
	}
	for i := range normal {
		if !r.sameStatus(&normal[i], &other[i]) {
			return false
		}
	}
	return true
}

// sameUnsorted compares container statuses; the second list may be in any order (N4). If the names
// in the first list are unique, and all are found in a second list of the same length, the lists
// match one to one. Otherwise sorted copies are compared.
func (r reading) sameUnsorted(normal, raw []v1.ContainerStatus, order statusOrder) bool {
	if len(normal) != len(raw) {
		return false
	}
	if !strictlyOrdered(normal, order) {
		sorted := slices.Clone(raw)
		sortStatuses(sorted, order)
		return r.sameStatuses(normal, sorted)
	}
	for i := range normal {
		other := findStatus(raw, normal[i].Name, i)
		if other == nil || !r.sameStatus(&normal[i], other) {
			return false
		}
	}
	return true
}

// findStatus looks for a name, first where it is likely to be.
func findStatus(list []v1.ContainerStatus, name string, likely int) *v1.ContainerStatus {
	if list[likely].Name == name {
		return &list[likely]
	}
	return StatusNamed(list, name)
}

func (r reading) sameStatus(a, b *v1.ContainerStatus) bool {
	return a.Name == b.Name &&
		a.Ready == b.Ready &&
		a.RestartCount == b.RestartCount &&
		sameText(a.ContainerID, b.ContainerID) &&
		sameText(a.Image, b.Image) &&
		sameText(a.ImageID, b.ImageID) &&
		samePointer(a.Started, b.Started) &&
		samePointer(a.StopSignal, b.StopSignal) &&
		r.sameState(&a.State, &b.State) &&
		r.sameState(&a.LastTerminationState, &b.LastTerminationState) &&
		sameResourceList(a.AllocatedResources, b.AllocatedResources) &&
		sameRequirements(a.Resources, b.Resources) &&
		sameEach(a.VolumeMounts, b.VolumeMounts, sameMount) &&
		sameUser(a.User, b.User) &&
		sameEach(a.AllocatedResourcesStatus, b.AllocatedResourcesStatus, sameResourceStatus) &&
		sameUnwritten(a, b)
}

func (r reading) sameState(a, b *v1.ContainerState) bool {
	return r.sameWaiting(a.Waiting, b.Waiting) &&
		r.sameRunning(a.Running, b.Running) &&
		r.sameTerminated(a.Terminated, b.Terminated)
}

func (r reading) sameWaiting(a, b *v1.ContainerStateWaiting) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameText(a.Reason, b.Reason) && sameText(a.Message, b.Message)
}

func (r reading) sameRunning(a, b *v1.ContainerStateRunning) bool {
	if a == nil || b == nil {
		return a == b
	}
	return r.sameTime(a.StartedAt, b.StartedAt)
}

func (r reading) sameTerminated(a, b *v1.ContainerStateTerminated) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ExitCode == b.ExitCode &&
		a.Signal == b.Signal &&
		sameText(a.ContainerID, b.ContainerID) &&
		r.sameTime(a.StartedAt, b.StartedAt) &&
		r.sameTime(a.FinishedAt, b.FinishedAt) &&
		sameText(a.Reason, b.Reason) &&
		sameCutText(a.Message, b.Message, r.limit)
}

func (r reading) sameTime(a, b metav1.Time) bool {
	if r.bySecond {
		return a.Unix() == b.Unix()
	}
	return a.Time.Equal(b.Time)
}

// orZero makes a missing time and an unset one the same, as JSON does.
func orZero(t *metav1.Time) metav1.Time {
	if t == nil {
		return metav1.Time{}
	}
	return *t
}

// sameResourceList compares quantities by value: 1Gi is 1024Mi.
func sameResourceList(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}

func sameRequirements(a, b *v1.ResourceRequirements) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameResourceList(a.Requests, b.Requests) &&
		sameResourceList(a.Limits, b.Limits) &&
		slices.Equal(a.Claims, b.Claims)
}

// sameEach compares two lists, without a copy of their elements.
func sameEach[T any](a, b []T, same func(a, b *T) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func sameMount(a, b *v1.VolumeMountStatus) bool {
	return a.Name == b.Name &&
		a.MountPath == b.MountPath &&
		a.ReadOnly == b.ReadOnly &&
		samePointer(a.RecursiveReadOnly, b.RecursiveReadOnly) &&
		volumeStatus.same(a, b)
}

func sameUser(a, b *v1.ContainerUser) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Linux == nil || b.Linux == nil {
		return a.Linux == b.Linux
	}
	return a.Linux.UID == b.Linux.UID &&
		a.Linux.GID == b.Linux.GID &&
		slices.Equal(a.Linux.SupplementalGroups, b.Linux.SupplementalGroups)
}

func sameResourceStatus(a, b *v1.ResourceStatus) bool {
	return a.Name == b.Name && sameEach(a.Resources, b.Resources, sameHealth)
}

func sameHealth(a, b *v1.ResourceHealth) bool {
	return a.ResourceID == b.ResourceID && a.Health == b.Health && healthMessage.same(a, b)
}

// samePointer compares what two pointers point to; nil differs from a pointer to zero.
func samePointer[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// NeedsReconcile reports whether the API's status of the pod differs from the cached one (R3). The
// API's status is compared as if normalized, without a copy. Nothing is allocated, and no diff is
// computed (R4). NeedsReconcile returns false if pod is nil (unknown to the node, R1) or api is nil (a static
// pod without a mirror, R2).
//
// True does not imply that a patch is needed: Merge may keep the API's side of the difference (X2,
// X5, X7), and then Patch returns nil. If the base is known, this costs no request, which avoids
// the endless reads of R5.
func NeedsReconcile(pod *v1.Pod, api, cached *v1.PodStatus) bool {
	return Ownership{}.NeedsReconcile(pod, api, cached)
}

// NeedsReconcile is [NeedsReconcile] with this table.
func (o Ownership) NeedsReconcile(pod *v1.Pod, api, cached *v1.PodStatus) bool {
	if pod == nil || api == nil {
		return false
	}
	return cached.ObservedGeneration != api.ObservedGeneration ||
		!samePhase(cached, api) ||
		!asStored.sameTime(orZero(cached.StartTime), orZero(api.StartTime)) ||
		!sameStoredAddresses(cached, api) ||
		!reconcilesUnwritten(api, cached) ||
		!o.sameAsRaw(pod, cached, api)
}
