package oracle

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/statusd/statusd/podstatus"
)

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

func isTerminalReason(reason string) bool {
	return reason == podstatus.ReasonPodFailed || reason == podstatus.ReasonPodCompleted
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

func isReadiness(t v1.PodConditionType) bool { return t == v1.PodReady || t == v1.ContainersReady }

func saysReady(status *v1.PodStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c v1.PodCondition) bool {
		return isReadiness(c.Type) && c.Status == v1.ConditionTrue
	})
}
