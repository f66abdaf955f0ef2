package podstatus

import v1 "k8s.io/api/core/v1"

// NeedsReconcile reports whether the API's status of the pod differs from the cached one (R3).
// The API's status is read as if it were normalised, without copying it. Nothing is
// allocated, and no diff is made (R4). Pod is nil if the node does not know the pod (R1); api
// is that of the mirror for a static pod, nil if it has none (R2): then the answer is no.
//
// A yes does not mean that there is something to send: Merge may keep the API's side of
// the difference (X2, X5, X7), and then Patch returns nil. With a base at hand that costs
// no request, which is how the endless reads of R5 end.
func NeedsReconcile(pod *v1.Pod, api, cached *v1.PodStatus) bool {
	return Ownership{}.NeedsReconcile(pod, api, cached)
}

// NeedsReconcile is [NeedsReconcile] by this table.
func (o Ownership) NeedsReconcile(pod *v1.Pod, api, cached *v1.PodStatus) bool {
	if pod == nil || api == nil {
		return false
	}
	return cached.ObservedGeneration != api.ObservedGeneration ||
		!samePhase(cached, api) ||
		!asStored.sameTime(orZero(cached.StartTime), orZero(api.StartTime)) ||
		!sameStoredAddresses(cached, api) ||
		!reconcilesUnwritten(api, cached) ||
		!o.sameAsRaw(pod, cached, api)
}
