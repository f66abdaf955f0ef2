package status

import (
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// urgency is the class of a change, the most urgent first. It decides the order in which pods
// are served, never whether: an idle engine sends everything at once but the details of many pods, see details.go.
type urgency uint8

const (
	// withdrawal: the pod loses readiness, ends, or is deleted. Traffic or resources wait on it.
	withdrawal urgency = iota
	// start: the first Running, the first Ready, the first IP.
	start
	// normal: any other change.
	normal
	// background: the API differs from a status that it had accepted before, and neither in
	// readiness nor in an end.
	background
)

func (u urgency) String() string {
	return [...]string{"withdrawal", "start", "normal", "background"}[u]
}

// urgencyOf classes the change from one status of a pod to the next.
func urgencyOf(old, next *v1.PodStatus, finished bool) urgency {
	switch {
	case finished,
		podstatus.IsTerminal(next.Phase) && !podstatus.IsTerminal(old.Phase),
		isReady(old) && !isReady(next):
		return withdrawal
	case next.Phase == v1.PodRunning && old.Phase != v1.PodRunning,
		isReady(next) && !isReady(old),
		len(next.PodIPs) > 0 && len(old.PodIPs) == 0,
		next.PodIP != "" && old.PodIP == "":
		return start
	default:
		return normal
	}
}

// reconcileUrgency classes a difference between the API's pod and a status that it had accepted before:
// what traffic and controllers wait for is as urgent as if it were new.
func reconcileUrgency(api, cached *v1.PodStatus) urgency {
	if u := urgencyOf(api, cached, false); u != normal {
		return u
	}
	return background
}

func isReady(status *v1.PodStatus) bool {
	condition := podstatus.FindCondition(status.Conditions, v1.PodReady)
	return condition != nil && condition.Status == v1.ConditionTrue
}
