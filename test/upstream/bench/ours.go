package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/status"
)

// ours is statusd's manager.
type ours struct {
	endings
	*status.Manager
	table  *pods.Table
	cancel context.CancelFunc
	done   chan struct{}
}

// newOurs makes a manager; limits are those of its requests, none if zero.
func newOurs(client status.Client, limit limit) *ours { return newOursObserved(client, limit, nil) }

// newOursFor makes the manager of a side.
func newOursFor(s side, client status.Client, limit limit) *ours {
	o := &ours{table: pods.New()}
	return o.with(status.Options{Client: client, Pods: o.table, QPS: limit.qps, Burst: limit.burst, PreferThroughput: s == throughput})
}

func newOursObserved(client status.Client, limit limit, observer status.Observer) *ours {
	o := &ours{table: pods.New()}
	return o.with(status.Options{Client: client, Pods: o.table, QPS: limit.qps, Burst: limit.burst, Observer: observer})
}

func (o *ours) with(options status.Options) *ours {
	options.Safety = o
	m, err := status.New(options)
	if err != nil {
		panic(fmt.Sprintf("options of statusd: %v", err))
	}
	o.Manager = m
	return o
}

func (o *ours) CouldHaveRunningContainers(pod *v1.Pod) bool { return o.couldRun(pod) }

func (o *ours) setPodStatus(pod *v1.Pod, status v1.PodStatus) {
	if _, err := o.SetPodStatus(pod, status); err != nil {
		panic(fmt.Sprintf("statusd refused a status: %v", err))
	}
}

func (o *ours) setReadiness(uid types.UID, ready bool) {
	if err := o.SetContainerReadiness(uid, runtimeName+"://"+containerID(uid), ready); err != nil {
		panic(fmt.Sprintf("statusd refused a readiness: %v", err))
	}
}

func (o *ours) terminate(pod *v1.Pod) {
	o.note(pod.UID)
	if err := o.TerminatePod(pod); err != nil {
		panic(fmt.Sprintf("statusd refused a termination: %v", err))
	}
}

func (o *ours) get(uid types.UID) (v1.PodStatus, bool) { return o.GetPodStatus(uid) }

func (o *ours) know(pod *v1.Pod) {
	o.table.Set(pod)
	o.ObservePod(pod)
}

func (o *ours) forget(pod *v1.Pod) { o.table.Remove(pod) }

func (o *ours) start(ctx context.Context) {
	if o.cancel != nil {
		return
	}
	ctx, o.cancel = context.WithCancel(ctx)
	o.done = make(chan struct{})
	go func() {
		defer close(o.done)
		if err := o.Run(ctx); err != nil {
			panic(fmt.Sprintf("statusd stopped: %v", err))
		}
	}()
}

func (o *ours) stop() {
	if o.cancel != nil {
		o.cancel()
		<-o.done
	}
}
