package oracle

import (
	"slices"

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
