package shutdown

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// criticalPriority is the lowest priority of the pods that end last: the priority of the class
// system-cluster-critical.
const criticalPriority = 2_000_000_000

// A Group is pods that end together.
type Group struct {
	Pods []*v1.Pod
	// Within is how long they may take.
	Within time.Duration
}

// Plan sorts pods into groups, in the order in which they end: the ordinary pods have the whole time
// except for the share of the critical ones.
func Plan(pods []*v1.Pod, grace, critical time.Duration) []Group {
	critical = min(critical, grace)
	groups := []Group{{Within: grace - critical}, {Within: critical}}
	for _, pod := range pods {
		last := 0
		if pod.Spec.Priority != nil && *pod.Spec.Priority >= criticalPriority {
			last = 1
		}
		groups[last].Pods = append(groups[last].Pods, pod)
	}
	return groups
}
