package podrules

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Normalize returns the status as the API server would return it, so that this node's status and
// the API's can be compared: times in whole seconds (N1), termination messages within their share
// of the pod's budget (N2) and cut between two runes (N3), text as valid UTF-8, container statuses
// in a fixed order (N4), consistent addresses (N6). The order of conditions stays (N5). The result
// shares no memory with status.
func Normalize(pod *v1.Pod, status *v1.PodStatus) v1.PodStatus {
	var normal v1.PodStatus
	status.DeepCopyInto(&normal)
	normalize(pod, &normal)
	return normal
}

// normalize does the work of Normalize on a status that the caller owns.
func normalize(pod *v1.Pod, status *v1.PodStatus) {
	if status.StartTime.IsZero() {
		status.StartTime = nil // JSON has no other way to say it
	} else {
		truncate(status.StartTime)
	}
	PairAddresses(&status.PodIP, &status.PodIPs)
	PairAddresses(&status.HostIP, &status.HostIPs)
	status.Reason, status.Message = ValidText(status.Reason), ValidText(status.Message)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		truncate(&c.LastProbeTime)
		truncate(&c.LastTransitionTime)
		c.Reason, c.Message = ValidText(c.Reason), ValidText(c.Message)
	}
	limit := messageLimit(pod)
	for _, list := range [...][]v1.ContainerStatus{
		status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for i := range list {
			c := &list[i]
			c.Image, c.ImageID, c.ContainerID = ValidText(c.Image), ValidText(c.ImageID), ValidText(c.ContainerID)
			normalizeState(&c.State, limit)
			normalizeState(&c.LastTerminationState, limit)
		}
	}
	sortStatuses(status.ContainerStatuses, compareNames)
	sortStatuses(status.EphemeralContainerStatuses, compareNames)
	sortStatuses(status.InitContainerStatuses, compareInit(pod))
}

func normalizeState(state *v1.ContainerState, limit int) {
	if w := state.Waiting; w != nil {
		w.Reason, w.Message = ValidText(w.Reason), ValidText(w.Message)
	}
	if r := state.Running; r != nil {
		truncate(&r.StartedAt)
	}
	if t := state.Terminated; t != nil {
		truncate(&t.StartedAt)
		truncate(&t.FinishedAt)
		t.Reason, t.ContainerID = ValidText(t.Reason), ValidText(t.ContainerID)
		t.Message = cutText(ValidText(t.Message), limit)
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

// strictlyOrdered reports whether the list is in order and holds no name twice.
func strictlyOrdered(list []v1.ContainerStatus, order statusOrder) bool {
	for i := 1; i < len(list); i++ {
		if order(&list[i-1], &list[i]) >= 0 {
			return false
		}
	}
	return true
}

// maxMessageBytes is what all termination messages of a pod may take together.
const maxMessageBytes = 12288

// messageLimit is the share of one container in the pod's budget for termination messages (N2). It
// counts the containers of the spec, not the container statuses.
func messageLimit(pod *v1.Pod) int {
	containers := len(pod.Spec.Containers) + len(pod.Spec.InitContainers) + len(pod.Spec.EphemeralContainers)
	return maxMessageBytes / max(containers, 1)
}

// cutText shortens a valid text to at most limit bytes without splitting a rune (N3): half
// a rune comes back from the API as U+FFFD, and the two texts would differ forever.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// ValidText replaces each byte that is not part of a rune by U+FFFD, as encoding to JSON does.
func ValidText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// sameText reports whether raw would be normalized to clean, without building that text.
func sameText(clean, raw string) bool {
	return sameCutText(clean, raw, math.MaxInt)
}

// sameCutText is sameText for a message that normalizing also cuts to limit bytes.
func sameCutText(clean, raw string, limit int) bool {
	if len(raw) <= limit && clean == raw {
		return true
	}
	if utf8.ValidString(raw) {
		return clean == cutText(raw, limit)
	}
	n := 0
	for _, r := range raw { // yields U+FFFD for each stray byte, as ValidText does
		width := utf8.RuneLen(r)
		if n+width > limit {
			break
		}
		if got, size := utf8.DecodeRuneInString(clean[n:]); got != r || size != width {
			return false
		}
		n += width
	}
	return n == len(clean)
}

// A pod status names the pod's and the host's addresses twice: the main one alone, and all of
// them with the main one first. The API server makes the pod's pair agree when it stores a
// status, and refuses a host's pair that does not. A status that says less than both is
// completed in the same way before it is stored here (N6): otherwise the API's copy would
// differ from it forever.

// PairAddresses makes the main address and the list consistent: a missing value is set from the
// other, and if they contradict each other, the main address counts.
func PairAddresses[T v1.PodIP | v1.HostIP](main *string, all *[]T) {
	switch {
	case *main == "" && len(*all) > 0:
		*main = v1.PodIP((*all)[0]).IP
	case *main != "" && !leads(*main, *all):
		*all = []T{T(v1.PodIP{IP: *main})}
	}
}

// leads reports whether the list begins with the address.
func leads[T v1.PodIP | v1.HostIP](main string, all []T) bool {
	return len(all) > 0 && v1.PodIP(all[0]).IP == main
}

// sameAddresses compares a pair that agrees with one as a reporter built it, as if
// PairAddresses had been applied to that.
func sameAddresses[T v1.PodIP | v1.HostIP](main string, all []T, rawMain string, rawAll []T) bool {
	if rawMain == "" && len(rawAll) > 0 {
		rawMain = v1.PodIP(rawAll[0]).IP
	}
	if main != rawMain {
		return false
	}
	if rawMain != "" && !leads(rawMain, rawAll) {
		return len(all) == 1 && leads(rawMain, all)
	}
	if len(all) != len(rawAll) {
		return false
	}
	for i := range all {
		if v1.PodIP(all[i]).IP != v1.PodIP(rawAll[i]).IP {
			return false
		}
	}
	return true
}
