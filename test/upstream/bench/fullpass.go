package main

import (
	"context"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/status"
)

const fullPassPods = 1000

func fullPassScenarios() []scenario {
	return []scenario{{
		yields: []yield{{"full_pass_1000", "ms"}},
		sides:  managers,
		measure: func(ctx context.Context, _ *lab, s side) ([]float64, error) {
			if s == statusd {
				return ourFullPass(ctx)
			}
			return theirFullPass(ctx)
		},
	}}
}

// theirFullPass calls the pass of the kubelet's manager.
func theirFullPass(ctx context.Context) ([]float64, error) {
	pods := knownPods(fullPassPods)
	m, api := newInstant(upstream, pods)
	defer m.stop()
	if err := settle(ctx, m, pods); err != nil {
		return nil, err
	}
	for _, pod := range pods {
		m.know(api.pod(pod.Name)) // the watch delivers what was written
	}
	ns := timed(func() { m.(*theirs).sync(ctx, true) })[0]
	return []float64{ns / 1e6}, nil
}

// ourFullPass has passes of statusd's manager follow each other without a pause, and
// counts them by the questions that each asks about each pod.
func ourFullPass(ctx context.Context) ([]float64, error) {
	const forTime = time.Second
	list := knownPods(fullPassPods)
	api := newInstantAPI(list)
	table := &countingTable{Table: pods.New()}
	m := (&ours{table: table.Table}).with(status.Options{Client: api, Pods: table, ResyncPeriod: time.Nanosecond})
	defer m.stop()
	api.wants = func(uid types.UID) *v1.PodStatus {
		status, _ := m.get(uid)
		return &status
	}
	for _, pod := range list {
		m.know(pod)
	}
	if err := settle(ctx, m, list); err != nil {
		return nil, err
	}
	for _, pod := range list {
		m.know(api.pod(pod.Name)) // the watch delivers what was written
	}
	begin, before := time.Now(), table.questions.Load()
	select {
	case <-time.After(forTime):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	passes := float64(table.questions.Load()-before) / fullPassPods
	return []float64{time.Since(begin).Seconds() * 1e3 / passes}, nil
}

// countingTable counts how often it was asked about a pod.
type countingTable struct {
	*pods.Table
	questions atomic.Int64
}

func (c *countingTable) ByUID(uid types.UID) (*v1.Pod, bool) {
	c.questions.Add(1)
	return c.Table.ByUID(uid)
}
