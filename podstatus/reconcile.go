package podstatus

import v1 "k8s.io/api/core/v1"

// NeedsReconcile says whether the API's status of the pod differs from the cached one (R3).
// The API's status is read as if it were normalised, without copying it, and nothing is
// allocated when the answer is no.
//
// A yes does not mean that there is something to send: Merge may keep the API's side of
// the difference (X2, X5, X7), and then Patch returns nil. With a base at hand that costs
// no request, which is how the endless reads of R5 end.
//
// R1 and R2 are the caller's: it compares only pods that it knows, and a static pod with
// the status of its mirror.
func NeedsReconcile(pod *v1.Pod, api, cached *v1.PodStatus) bool {
	return cached.ObservedGeneration != api.ObservedGeneration ||
		!samePhase(cached, api) ||
		!sameStartTime(cached, api) ||
		!sameAsRaw(pod, cached, api)
}

func sameStartTime(normal, raw *v1.PodStatus) bool {
	a, b := normal.StartTime, raw.StartTime
	return a == b || a != nil && b != nil && a.Unix() == b.Unix()
}
