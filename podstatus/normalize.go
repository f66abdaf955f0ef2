package podstatus

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Normalize returns the status as the API server would hand it back, so that what this
// node says and what the API holds can be compared: times in whole seconds (N1),
// termination messages within their share of the pod's budget (N2) and cut between two
// runes (N3), text free of bytes that JSON cannot carry, container statuses in a fixed
// order (N4), addresses that agree (N6). The order of conditions stays (N5). The result
// shares nothing with status.
func Normalize(pod *v1.Pod, status *v1.PodStatus) v1.PodStatus {
	var normal v1.PodStatus
	status.DeepCopyInto(&normal)
	normalize(pod, &normal)
	return normal
}

// normalize does the work of Normalize on a status that nobody else holds.
func normalize(pod *v1.Pod, status *v1.PodStatus) {
	if status.StartTime.IsZero() {
		status.StartTime = nil // JSON has no other way to say it
	} else {
		truncate(status.StartTime)
	}
	pairAddresses(&status.PodIP, &status.PodIPs)
	pairAddresses(&status.HostIP, &status.HostIPs)
	status.Reason, status.Message = validText(status.Reason), validText(status.Message)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		truncate(&c.LastProbeTime)
		truncate(&c.LastTransitionTime)
		c.Reason, c.Message = validText(c.Reason), validText(c.Message)
	}
	limit := messageLimit(pod)
	for _, list := range [...][]v1.ContainerStatus{
		status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for i := range list {
			normalizeState(&list[i].State, limit)
			normalizeState(&list[i].LastTerminationState, limit)
		}
	}
	sortStatuses(status.ContainerStatuses, compareNames)
	sortStatuses(status.EphemeralContainerStatuses, compareNames)
	sortStatuses(status.InitContainerStatuses, compareInit(pod))
}

func normalizeState(state *v1.ContainerState, limit int) {
	if w := state.Waiting; w != nil {
		w.Reason, w.Message = validText(w.Reason), validText(w.Message)
	}
	if r := state.Running; r != nil {
		truncate(&r.StartedAt)
	}
	if t := state.Terminated; t != nil {
		truncate(&t.StartedAt)
		truncate(&t.FinishedAt)
		t.Reason = validText(t.Reason)
		t.Message = cutText(validText(t.Message), limit)
	}
}

// truncate drops what the API server does not store: fractions of a second.
func truncate(t *metav1.Time) {
	t.Time = t.Truncate(time.Second)
}

// statusOrder compares two container statuses by what decides their place.
type statusOrder func(a, b *v1.ContainerStatus) int

func compareNames(a, b *v1.ContainerStatus) int {
	return strings.Compare(a.Name, b.Name)
}

// compareInit orders init containers as the spec does. Names that the spec does not know
// come last, by name, so that a reporter's order never shows.
func compareInit(pod *v1.Pod) statusOrder {
	return func(a, b *v1.ContainerStatus) int {
		return cmp.Or(
			cmp.Compare(initIndex(pod, a.Name), initIndex(pod, b.Name)),
			strings.Compare(a.Name, b.Name))
	}
}

func initIndex(pod *v1.Pod, name string) int {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return i
		}
	}
	return len(pod.Spec.InitContainers)
}

// sortStatuses is stable, so that two statuses of one name keep their order.
func sortStatuses(list []v1.ContainerStatus, order statusOrder) {
	byValue := func(a, b v1.ContainerStatus) int { return order(&a, &b) }
	if len(list) > 1 {
		slices.SortStableFunc(list, byValue)
	}
}

// strictlyOrdered says that the list is in order and holds no name twice.
func strictlyOrdered(list []v1.ContainerStatus, order statusOrder) bool {
	for i := 1; i < len(list); i++ {
		if order(&list[i-1], &list[i]) >= 0 {
			return false
		}
	}
	return true
}
