package fit

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// Victims returns the pods that have to leave so that a critical pod fits, nil if no choice makes
// enough room. Pods without requests go first and guaranteed ones last; beyond that as few as
// possible, and the smallest that are enough, by name among pods of one size.
func Victims(pod *v1.Pod, active []*v1.Pod, short *Shortage) []*v1.Pod {
	need := short.Requested - (short.Capacity - short.Used)
	share := func(p *v1.Pod) int64 {
		if short.Resource == v1.ResourcePods {
			return 1
		}
		return amount(short.Resource, Requests(p)[short.Resource])
	}
	byClass := map[v1.PodQOSClass][]*v1.Pod{}
	for _, other := range active {
		if mayPreempt(pod, other) && share(other) > 0 {
			class := podstatus.QOSClass(other)
			byClass[class] = append(byClass[class], other)
		}
	}
	total := func(pods []*v1.Pod) (sum int64) {
		for _, p := range pods {
			sum += share(p)
		}
		return sum
	}
	low, middle, high := byClass[v1.PodQOSBestEffort], byClass[v1.PodQOSBurstable], byClass[v1.PodQOSGuaranteed]
	if total(low)+total(middle)+total(high) < need {
		return nil
	}
	// From the top: the amount that the lower classes cannot provide has to come from here.
	fromHigh := fewest(high, need-total(low)-total(middle), share)
	fromMiddle := fewest(middle, need-total(low)-total(fromHigh), share)
	fromLow := fewest(low, need-total(fromMiddle)-total(fromHigh), share)
	return slices.Concat(fromLow, fromMiddle, fromHigh)
}

// fewest picks pods that have at least so much together: the smallest that is enough alone,
// or else the largest and then on.
func fewest(pods []*v1.Pod, need int64, share func(*v1.Pod) int64) []*v1.Pod {
	left := slices.Clone(pods)
	slices.SortFunc(left, func(a, b *v1.Pod) int { return cmp.Or(cmp.Compare(share(a), share(b)), byName(a, b)) })
	var picked []*v1.Pod
	for need > 0 && len(left) > 0 {
		i := slices.IndexFunc(left, func(p *v1.Pod) bool { return share(p) >= need })
		if i < 0 {
			i = len(left) - 1
		}
		picked = append(picked, left[i])
		need -= share(left[i])
		left = slices.Delete(left, i, i+1)
	}
	return picked
}

// byName makes the choice among pods of one size the same, in whichever order they come.
func byName(a, b *v1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// mayPreempt reports whether a pod may have to leave for a critical one.
func mayPreempt(critical, other *v1.Pod) bool {
	if !podstatus.IsCritical(other) {
		return true
	}
	return critical.Spec.Priority != nil && other.Spec.Priority != nil && *critical.Spec.Priority > *other.Spec.Priority
}
