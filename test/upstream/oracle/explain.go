package oracle

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// statusPairs calls f for the statuses that both sides have: those in the API, and those
// in the cache. statusPairs reports whether f did for any.
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

// explainOrder: the types are the same in another order. A status that is stored again after
// its removal may take the API's order over into the cache.
func explainOrder(c *Case) bool {
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
