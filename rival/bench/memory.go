package main

import (
	"context"
	"runtime"
)

const memoryPods = 10_000

func memoryScenarios() []scenario {
	return []scenario{{
		yields:  []yield{{"memory_per_pod", "bytes"}},
		sides:   managers,
		measure: measureMemory,
	}}
}

// measureMemory compares the heap before and after a manager has a status of each pod. It
// is that of an agent that was restarted: the pods are there before, with the statuses that
// an earlier manager has written, and so do not count.
func measureMemory(ctx context.Context, _ *lab, s side) ([]float64, error) {
	pods := knownPods(memoryPods)
	earlier, api := newInstant(s, pods)
	if err := settle(ctx, earlier, pods); err != nil {
		return nil, err
	}
	for i, pod := range pods {
		pods[i] = api.pod(pod.Name)
	}
	earlier.stop()

	m, _ := newInstant(s, pods)
	defer m.stop()
	before := heap()
	if err := settle(ctx, m, pods); err != nil {
		return nil, err
	}
	return []float64{(heap() - before) / memoryPods}, nil
}

// heap is how many bytes are in use.
func heap() float64 {
	// The second collection frees what the first has only finalised.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
