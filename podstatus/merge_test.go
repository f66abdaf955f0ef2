package podstatus_test

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// sameInAPI compares two statuses in every field, with conditions in any order.
func sameInAPI(a, b *v1.PodStatus) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, s := range []*v1.PodStatus{a, b} {
		slices.SortStableFunc(s.Conditions, func(x, y v1.PodCondition) int {
			return strings.Compare(string(x.Type), string(y.Type))
		})
		if s.StartTime.IsZero() {
			s.StartTime = nil
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}
