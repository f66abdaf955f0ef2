package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// growthScenarios measure one change, from the report to the patch, with ever more pods in
// the cache whose statuses the API has already.
func growthScenarios() []scenario {
	var list []scenario
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		list = append(list, scenario{
			yields: []yield{{fmt.Sprintf("growth_%d", n), "µs"}},
			sides:  managers,
			measure: func(ctx context.Context, _ *lab, s side) ([]float64, error) {
				return measureGrowth(ctx, s, n)
			},
		})
	}
	return list
}

func measureGrowth(ctx context.Context, s side, n int) ([]float64, error) {
	const (
		atLeast = 10
		atMost  = 2000
		forTime = 2 * time.Second
	)
	pods := knownPods(n)
	m, api := newInstant(s, pods)
	if err := settle(ctx, m, pods); err != nil {
		return nil, err
	}
	patched := make(chan struct{}, 1) // one change at a time
	api.tell(func() { patched <- struct{}{} })
	m.start(ctx)
	defer m.stop()

	var samples []float64
	for begin := time.Now(); len(samples) < atLeast || len(samples) < atMost && time.Since(begin) < forTime; {
		pod := pods[(len(samples)*7919)%n] // a prime: pods far apart from each other
		status := running(pod, true, int32(1+len(samples)/n))
		at := time.Now()
		m.setPodStatus(pod, status)
		select {
		case <-patched:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		samples = append(samples, float64(time.Since(at).Nanoseconds())/1e3)
	}
	return []float64{quantile(samples, 0.5)}, nil
}

// settle reports a status for each pod and returns when the API has them all. settle starts
// statusd's manager for that, but not the kubelet's.
func settle(ctx context.Context, m manager, pods []*v1.Pod) error {
	for _, pod := range pods {
		m.setPodStatus(pod, running(pod, true, 0))
	}
	if t, ok := m.(*theirs); ok {
		t.sync(ctx, false)
		return ctx.Err()
	}
	m.start(ctx)
	return m.(interface{ Flush(context.Context) error }).Flush(ctx)
}
