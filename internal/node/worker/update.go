package worker

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/statusd/statusd/podstatus"
)

// needsTurn reports whether a worker has to act on an update of a pod. Most updates are the watch's
// echo of this node's own status writes, which the kubelet calls RECONCILE. If another writer has
// changed the status, the status manager repairs it.
func needsTurn(before, after *v1.Pod) bool {
	return before.Generation != after.Generation || // it is observed, even if the spec says the same
		!before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(before.DeletionGracePeriodSeconds, after.DeletionGracePeriodSeconds) ||
		!maps.Equal(before.Labels, after.Labels) || // volumes show labels and annotations
		!maps.Equal(before.Annotations, after.Annotations) ||
		!slices.Equal(ofOthers(before), ofOthers(after)) ||
		!equality.Semantic.DeepEqual(&before.Spec, &after.Spec)
}

// ofOthers are the conditions that the node does not own. Readiness gates look at them.
func ofOthers(pod *v1.Pod) []v1.PodCondition {
	var others []v1.PodCondition
	for _, c := range pod.Status.Conditions {
		if !podstatus.IsOwned(c.Type) {
			others = append(others, c)
		}
	}
	return others
}
