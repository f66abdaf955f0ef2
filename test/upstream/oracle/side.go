package oracle

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// side is a status manager with its pods and its API: the kubelet's, or statusd's.
type side interface {
	server() *Server
	// start lets the manager work; stop ends it, and may need time to pass for that.
	start()
	stop()

	// setPod and removePod are what the node learns of its pods: the table of pods
	// changes, and the manager is informed if it has a method for that.
	setPod(*v1.Pod)
	removePod(*v1.Pod)
	// known returns the pod as the node has it; a mirror pod is not known this way.
	known(types.UID) (*v1.Pod, bool)

	report(pod *v1.Pod, status v1.PodStatus) (changed bool)
	ready(uid types.UID, containerID string, ready bool)
	started(uid types.UID, containerID string, started bool)
	terminate(*v1.Pod)
	removeOrphans(keep map[types.UID]bool)
	cached(types.UID) (*v1.PodStatus, bool)

	resizePending(uid types.UID, reason, message string, generation int64) bool
	resizeInProgress(uid types.UID, reason, message string, generation int64) (int64, bool)
	clearResizePending(types.UID)
	clearResizeInProgress(types.UID) (int64, bool)
	backfillResize([]*v1.Pod)
	resizeConditions(types.UID) []v1.PodCondition
}

// safety answers whether a pod could have running containers. Like the kubelet's pod
// workers it goes by the UID that the node knows a pod by, and knows no mirror pods.
type safety func(types.UID) bool

func (s safety) PodCouldHaveRunningContainers(pod *v1.Pod) bool { return s(pod.UID) }
func (s safety) CouldHaveRunningContainers(pod *v1.Pod) bool    { return s(pod.UID) }
