package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// exactCopy copies a slice without spare capacity: an append to a shared result must never
// write into memory that another holder appends to as well.
func exactCopy[T any](s []T) []T {
	c := make([]T, len(s))
	copy(c, s)
	return c
}

// withConditions returns a copy of conditions in which two are set, each in the place of the
// one of its type, or at the end.
func withConditions(conditions []v1.PodCondition, first, second *v1.PodCondition) []v1.PodCondition {
	c := setCondition(exactCopy(conditions), first)
	return slices.Clip(setCondition(c, second))
}

// setCondition writes into conditions, which the caller must own.
func setCondition(conditions []v1.PodCondition, c *v1.PodCondition) []v1.PodCondition {
	if at := FindCondition(conditions, c.Type); at != nil {
		*at = *c
		return conditions
	}
	return append(conditions, *c)
}
