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

// measureMemory compares the heap before and after the manager has a status of each pod
// and the API has them all. The pods themselves are there before.
func measureMemory(ctx context.Context, _ *lab, s side) ([]float64, error) {
	pods := knownPods(memoryPods)
	m, api := newInstant(s, pods)
	defer m.stop()
	before := heap()
	if err := settle(ctx, m, pods); err != nil {
		return nil, err
	}
	api.reset(pods) // what the API holds is not the manager's
	after := heap()
	return []float64{(after - before) / memoryPods}, nil
}

// heap is how many bytes are in use.
func heap() float64 {
	// The second collection frees what the first has only finalized.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
