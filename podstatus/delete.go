package podstatus

import v1 "k8s.io/api/core/v1"

// Deletable reports whether the pod may now be deleted from the API: someone asked for it,
// the API itself shows a terminal phase, and the node is finished with the pod (D1, D6).
// A mirror pod goes with its static pod, never by this way.
func Deletable(apiPod *v1.Pod, finished bool) bool {
	return finished &&
		apiPod.DeletionTimestamp != nil &&
		!IsMirror(apiPod) &&
		IsTerminal(apiPod.Status.Phase)
}
