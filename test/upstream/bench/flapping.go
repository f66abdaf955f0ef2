package main

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	flappingPods  = 500
	flappingEvery = time.Second / 2
	flappingFor   = 30 * time.Second
	// flappingStarts is how many pods start meanwhile, evenly spread.
	flappingStarts = 100
	// flappingPatience is how long the last start may take to be seen.
	flappingPatience = 2 * time.Minute
)

func flappingScenarios() []scenario {
	return []scenario{{
		yields:  []yield{{"flapping", "ms, max"}, {"flapping_p50", "ms, p50"}},
		sides:   managers,
		rounds:  2,
		measure: measureFlapping,
	}}
}

// measureFlapping has each of many pods lose and regain readiness twice a second, which is more
// than the server can take, while others start. measureFlapping returns how long a start took to be
// seen, at most and in the middle.
func measureFlapping(ctx context.Context, lab *lab, s side) (_ []float64, err error) {
	c, duration := circumstances{pods: flappingStarts, serving: flappingPods}, flappingFor
	if lab.quick {
		c, duration = lab.scaled(c), duration/5
	}
	st, err := lab.newStage(ctx, s, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(ctx, st, err) }()

	flapCtx, stop := context.WithTimeout(ctx, duration)
	defer stop()
	var flaps sync.WaitGroup
	defer flaps.Wait()
	for i, pod := range st.serving[1:] {
		flaps.Go(func() { st.flap(flapCtx, pod, time.Duration(i)*flappingEvery/flappingPods) })
	}
	var changes []change
	for _, pod := range st.pods {
		time.Sleep(duration / time.Duration(len(st.pods)+1))
		changes = append(changes, change{at: time.Now(), sighting: st.witness.expect(pod.UID, seenRunning)})
		st.manager.setPodStatus(pod, running(pod, true, 0))
	}
	patient, cancel := context.WithTimeout(ctx, flappingPatience)
	defer cancel()
	var ages []time.Duration
	for _, change := range changes {
		at, err := last(patient, []*sighting{change.sighting})
		if err != nil {
			return nil, err
		}
		ages = append(ages, at.Sub(change.at))
	}
	return []float64{milliseconds(ages, 1), milliseconds(ages, 0.5)}, nil
}

// flap has a pod lose and regain readiness until the context ends.
func (st *stage) flap(ctx context.Context, pod *v1.Pod, first time.Duration) {
	wait := first
	for ready := false; ; ready = !ready {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		st.manager.setReadiness(pod.UID, ready)
		wait = flappingEvery
	}
}
