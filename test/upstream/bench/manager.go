package main

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// manager is what the scenarios ask of the status manager of either side. Like the real
// ones it may be called from any goroutine.
type manager interface {
	setPodStatus(*v1.Pod, v1.PodStatus)
	setReadiness(uid types.UID, ready bool)
	terminate(*v1.Pod)
	get(types.UID) (v1.PodStatus, bool)

	// know puts the pod, as the watch has delivered it, where the manager looks for it,
	// and informs the manager if it has a method for that. forget is its opposite.
	know(*v1.Pod)
	forget(*v1.Pod)

	// start returns at once. It does nothing if the manager has been started.
	start(context.Context)
	// stop leaves nothing behind that would disturb the next measurement.
	stop()
}

// endings has the pods without running containers. Both sides query it before they report the end
// of a pod to the API.
type endings struct {
	ended sync.Map // of types.UID
}

func (e *endings) note(uid types.UID) { e.ended.Store(uid, true) }

func (e *endings) couldRun(pod *v1.Pod) bool {
	_, ended := e.ended.Load(pod.UID)
	return !ended
}
