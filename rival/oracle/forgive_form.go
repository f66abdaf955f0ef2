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
