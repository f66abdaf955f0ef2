package main

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// callScenarios measure one call each, of a manager that is not running, for a pod of one
// container with four conditions.
func callScenarios() []scenario {
	return []scenario{
		callScenario("set_unchanged", func(m manager, pod *v1.Pod) func() {
			status := running(pod, true, 0)
			return func() { m.setPodStatus(pod, status) }
		}),
		callScenario("set_changed", func(m manager, pod *v1.Pod) func() {
			statuses := [2]v1.PodStatus{running(pod, true, 1), running(pod, true, 2)}
			return alternating(func(i int) { m.setPodStatus(pod, statuses[i]) })
		}),
		callScenario("readiness_flip", func(m manager, pod *v1.Pod) func() {
			return alternating(func(i int) { m.setReadiness(pod.UID, i == 1) })
		}),
		callScenario("get", func(m manager, pod *v1.Pod) func() {
			return func() { m.get(pod.UID) }
		}),
	}
}

// callScenario measures the call that prepare returns for a pod that the manager has a status of.
func callScenario(name string, prepare func(manager, *v1.Pod) func()) scenario {
	return scenario{
		yields: []yield{{name, "ns"}, {name + "_allocs", "allocs"}},
		sides:  managers,
		measure: func(_ context.Context, _ *lab, s side) ([]float64, error) {
			pods := knownPods(1)
			m, _ := newInstant(s, pods)
			defer m.stop()
			m.setPodStatus(pods[0], running(pods[0], true, 0))
			return timed(prepare(m, pods[0])), nil
		},
	}
}

// alternating calls with 0 and 1 in turn.
func alternating(call func(int)) func() {
	i := 0
	return func() {
		call(i)
		i = 1 - i
	}
}

// timed returns how many nanoseconds and allocations a call takes.
func timed(call func()) []float64 {
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	return []float64{float64(result.T.Nanoseconds()) / float64(result.N), float64(result.AllocsPerOp())}
}
