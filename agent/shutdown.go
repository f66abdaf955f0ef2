package agent

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/shutdown"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/podstatus"
)

// Reasons and messages of a shutdown, as in the kubelet.
const (
	reasonShutdown   = "Terminated"
	messageShutdown  = "Pod was terminated in response to imminent node shutdown."
	reasonTerminated = "TerminationByKubelet"
	reasonRefused    = "NodeShutdown"
	messageRefused   = "Pod was rejected as the node is shutting down."

	eventShutdown = "Shutdown"
)

// wireShutdown creates the part that ends the pods before the machine shuts down.
func (a *Agent) wireShutdown() {
	options := shutdown.Options{
		Grace:    a.config.ShutdownGracePeriod,
		Critical: cmp.Or(a.config.ShutdownGracePeriodCriticalPods, a.config.ShutdownGracePeriod/3),
		Pods:     a.activePods,
		End:      a.endForShutdown,
		Undo:     a.resumePods,
		Changed:  a.reportNode,
		Host:     a.options.Host,
		Logger:   a.log,
	}
	if a.client != nil {
		options.Settle = a.manager.Flush
	}
	if a.config.ShutdownGracePeriod == 0 {
		options.Host = nil
	}
	a.shutdown = shutdown.New(options)
	a.dispatcher.updated = func(pod *v1.Pod) {
		if a.shutdown.Err() != nil && podstatus.IsStatic(pod) {
			a.workers.Evict(pod.UID, worker.Eviction{Hold: true})
		}
	}
}

// activePods returns the pods that have not ended.
func (a *Agent) activePods() []*v1.Pod {
	var active []*v1.Pod
	for _, pod := range a.table.All() {
		if podstatus.IsMirror(pod) {
			continue
		}
		if status, known := a.manager.GetPodStatus(pod.UID); known && podstatus.IsTerminal(status.Phase) {
			continue
		}
		active = append(active, pod)
	}
	return active
}

// endForShutdown ends a pod. A pod from the API fails, so that its owner creates another pod
// elsewhere. A static pod is only stopped: it belongs to this machine and runs again after the
// boot.
func (a *Agent) endForShutdown(pod *v1.Pod, grace time.Duration) <-chan struct{} {
	a.workers.Evict(pod.UID, worker.Eviction{
		Grace: grace, Reason: reasonShutdown, Message: messageShutdown,
		Condition: &v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: reasonTerminated, Message: messageShutdown,
		},
		Hold: podstatus.IsStatic(pod),
	})
	return a.workers.Stopped(pod.UID)
}

func (a *Agent) resumePods() {
	for _, pod := range a.table.All() {
		a.workers.Resume(pod.UID)
	}
}

// reportNode reports whether this node is ready, until the API server has accepted the report or
// ctx ends.
func (a *Agent) reportNode(ctx context.Context) {
	if a.node == nil || !a.isIdentified() {
		return
	}
	message := "Shutdown manager detected shutdown event"
	if a.shutdown.Err() == nil {
		message = "Shutdown manager detected shutdown cancellation"
	}
	a.events.NodeEvent(v1.EventTypeNormal, eventShutdown, message)
	if err := a.node.Announce(ctx); err != nil {
		a.log.Warn("node not reported", "err", err)
	}
}
