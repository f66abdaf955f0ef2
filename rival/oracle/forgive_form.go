package oracle

import (
	"slices"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

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

// lastOfEachType returns the list without the conditions after which there is another of their
// type.
func lastOfEachType(list []v1.PodCondition) []v1.PodCondition {
	var last []v1.PodCondition
	for i, c := range list {
		if podstatus.FindCondition(list[i+1:], c.Type) == nil {
			last = append(last, c)
		}
	}
	return last
}

// hasDuplicate says that two conditions are of one type.
func hasDuplicate(list []v1.PodCondition) bool {
	types := typesOf(list)
	slices.Sort(types)
	return len(slices.Compact(types)) < len(list)
}
