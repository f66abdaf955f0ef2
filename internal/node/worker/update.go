package worker

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/statusd/statusd/podstatus"
)

// needsTurn reports whether an update of a pod is one that a worker acts on. Most updates
// are not: they are the watch's echo of what this node has written to the status. The
// kubelet knows the case as RECONCILE. A status that another writer has changed is the
// status manager's to repair.
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
