package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/internal/podrules"
)

// kubeletLimit is what the kubelet allows itself by default.
var kubeletLimit = limit{qps: 50, burst: 100}

// burstScenarios have many pods turn Running at once.
func burstScenarios() []scenario {
	near := []scenario{burstScenario(withFixed, circumstances{pods: 500},
		yield{"burst", "updates/s"}, yield{"burst_request", "ms"}, yield{"requests_per_change", "requests"})}
	return slices.Concat(near, atMost(3, []scenario{
		burstScenario(withFixed, circumstances{pods: 2000}, yield{"burst_2000", "updates/s"}, yield{"burst_2000_request", "ms"}),
		burstScenario(managers, circumstances{pods: 500, limit: kubeletLimit}, yield{"burst_qps50", "updates/s"}),
		burstScenario(withFixed, circumstances{pods: 200, roundTrip: 50 * time.Millisecond}, yield{"rtt50", "updates/s"}, yield{"rtt50_request", "ms"}),
		burstScenario(withFixed, circumstances{pods: 200, roundTrip: 200 * time.Millisecond}, yield{"rtt200", "updates/s"}, yield{"rtt200_request", "ms"}),
	}))
}

// upstreamFar is the number of pods for the kubelet's manager in a burst over a slow link. It
// handles pods one after the other, so that its speed does not depend on their number.
const upstreamFar = 50

func burstScenario(sides []side, c circumstances, yields ...yield) scenario {
	return scenario{yields: yields, sides: sides, measure: func(ctx context.Context, lab *lab, s side) (_ []float64, err error) {
		c := lab.scaled(c)
		if s == upstream && c.roundTrip >= 200*time.Millisecond {
			c.pods = min(c.pods, upstreamFar)
		}
		st, err := lab.newStage(ctx, s, c)
		if err != nil {
			return nil, err
		}
		defer func() { err = closing(ctx, st, err) }()
		took, err := st.burst(ctx)
		if err != nil {
			return nil, err
		}
		requests, _ := st.counter.perPod(len(st.pods))
		return []float64{float64(len(st.pods)) / took.Seconds(), st.counter.latency(), requests}, nil
	}}
}

// scaled makes a run shorter if results do not matter.
func (l *lab) scaled(c circumstances) circumstances {
	if l.quick {
		c.pods, c.serving = c.pods/5, c.serving/5
	}
	return c
}

func closing(ctx context.Context, st *stage, err error) error {
	if closeErr := st.close(ctx); err == nil {
		return closeErr
	}
	return err
}

// burst has all pods turn Running and Ready at once and returns how long it takes until
// the last one was seen.
func (st *stage) burst(ctx context.Context) (time.Duration, error) {
	begin, sightings, err := st.beginBurst(ctx)
	if err != nil {
		return 0, err
	}
	end, err := last(ctx, sightings)
	return end.Sub(begin), err
}

// beginBurst reports all pods as Running. For the ceiling it patches them itself, which it
// has finished when it returns.
func (st *stage) beginBurst(ctx context.Context) (time.Time, []*sighting, error) {
	begun := make(chan struct{})
	sightings, err := st.beginBurstSeen(ctx, seenRunning, begun)
	return st.begun, sightings, err
}

// beginBurstSeen is beginBurst with another way to tell whether a pod was seen to run. It
// closes begun when it begins.
func (st *stage) beginBurstSeen(ctx context.Context, seen func(watch.EventType, *v1.Pod) bool, begun chan<- struct{}) ([]*sighting, error) {
	statuses := make([]v1.PodStatus, len(st.pods))
	patches := make([][]byte, len(st.pods))
	sightings := make([]*sighting, len(st.pods))
	for i, pod := range st.pods {
		statuses[i] = running(pod, true, 0)
		patches[i] = patchToRunning(pod)
		sightings[i] = st.witness.expect(pod.UID, seen)
	}
	st.begun = time.Now()
	close(begun)
	if st.manager == nil {
		err := parallel(ctx, len(st.pods), st.side.inFlight(), func(i int) error { return st.patch(ctx, st.pods[i], patches[i]) })
		return sightings, err
	}
	for i, pod := range st.pods {
		st.manager.setPodStatus(pod, statuses[i])
	}
	return sightings, nil
}

// patchToRunning is the patch that statusd's manager would send.
func patchToRunning(pod *v1.Pod) []byte {
	status := running(pod, true, 0)
	next := podrules.Next(pod, &pod.Status, &status, time.Now())
	patch, err := podrules.Patch(pod.UID, &pod.Status, &next)
	if err != nil || patch == nil {
		panic(fmt.Sprintf("patch of a pod that turns Running: %s, %v", patch, err))
	}
	return patch
}

// patch is the ceiling: the request and nothing else.
func (st *stage) patch(ctx context.Context, pod *v1.Pod, patch []byte) error {
	_, err := st.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
