package main

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/podrules"
)

// withdrawalScenarios have pods lose readiness, one after the other, over the whole time in
// which many others start.
func withdrawalScenarios() []scenario {
	return []scenario{
		withdrawalScenario("withdrawals_in_burst", circumstances{pods: 2000, serving: 100}, 3),
		withdrawalScenario("withdrawals_in_burst_qps50", circumstances{pods: 500, serving: 50, limit: kubeletLimit}, 2),
		withdrawalScenario("withdrawals_in_burst_rtt50", circumstances{pods: 300, serving: 50, roundTrip: 50 * time.Millisecond}, 2),
	}
}

func withdrawalScenario(name string, c circumstances, rounds int) scenario {
	sides := []side{statusd, upstream, lone}
	if c.limit.qps > 0 {
		sides = managers // plain patches have no budget
	}
	return scenario{
		yields: []yield{{name, "ms, p50"}, {name + "_p99", "ms, p99"}, {name + "_queue", "ms, p50"}, {name + "_queue_p99", "ms, p99"}},
		sides:  sides,
		rounds: rounds,
		measure: func(ctx context.Context, lab *lab, s side) (_ []float64, err error) {
			st, err := lab.newStage(ctx, s, lab.scaled(c))
			if err != nil {
				return nil, err
			}
			defer func() { err = closing(ctx, st, err) }()
			return st.withdrawals(ctx)
		},
	}
}

// withdrawals starts all pods while serving pods lose readiness, evenly spread over the progress of
// the burst. withdrawals returns the time until a watch shows the loss, and the time until the request was
// sent, as median and 99th percentile.
func (st *stage) withdrawals(ctx context.Context) ([]float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	withdraw, err := st.withdrawer(ctx, cancel)
	if err != nil {
		return nil, err
	}
	losing := st.serving[1:]
	due := make(chan int, len(losing))
	var progress atomic.Int64
	started := func(event watch.EventType, pod *v1.Pod) bool {
		if !seenRunning(event, pod) {
			return false
		}
		if n := int(progress.Add(1)); dueAt(n, len(st.pods), len(losing)) > dueAt(n-1, len(st.pods), len(losing)) {
			due <- dueAt(n, len(st.pods), len(losing)) - 1
		}
		return true
	}
	changes := make([]change, len(losing))
	for i, pod := range losing {
		changes[i].sighting = st.witness.expect(pod.UID, seenUnready)
	}
	burst := make(chan error, 1)
	var others []*sighting
	begun := make(chan struct{})
	go func() {
		var err error
		others, err = st.beginBurstSeen(ctx, started, begun)
		burst <- err
	}()
	<-begun
	for range losing {
		select {
		case i := <-due:
			changes[i].at = time.Now()
			withdraw(losing[i])
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err := <-burst; err != nil {
		return nil, err
	}
	_, err = last(ctx, others) // the next run begins on a quiet server
	var seen, queued []time.Duration
	for i, change := range changes {
		at, lastErr := last(ctx, []*sighting{change.sighting})
		err = errors.Join(err, lastErr)
		seen = append(seen, at.Sub(change.at))
		queued = append(queued, max(0, st.counter.sentAt(losing[i]).Sub(change.at)))
	}
	if err != nil {
		return nil, err
	}
	if st.manager == nil { // it has no queue
		return []float64{milliseconds(seen, 0.5), milliseconds(seen, 0.99), math.NaN(), math.NaN()}, nil
	}
	return []float64{milliseconds(seen, 0.5), milliseconds(seen, 0.99), milliseconds(queued, 0.5), milliseconds(queued, 0.99)}, nil
}

// dueAt is how many of the withdrawals should have happened once n of all starts were seen: the
// first half a stretch after the beginning, the last half a stretch before the end.
func dueAt(n, starts, withdrawals int) int {
	return (2*n*withdrawals + starts) / (2 * starts)
}

// withdrawer returns what makes a pod lose readiness: the manager, or a client of its own that
// sends the patch that statusd would send.
func (st *stage) withdrawer(ctx context.Context, failed context.CancelCauseFunc) (func(*v1.Pod), error) {
	if st.manager != nil {
		return func(pod *v1.Pod) { st.manager.setReadiness(pod.UID, false) }, nil
	}
	client, err := kubernetes.NewForConfig(st.config)
	if err != nil {
		return nil, err
	}
	own := &stage{client: client}
	return func(pod *v1.Pod) {
		patch := patchToUnready(pod)
		go func() {
			if err := own.patch(ctx, pod, patch); err != nil {
				failed(err)
			}
		}()
	}, nil
}

// patchToUnready is the patch that statusd's manager would send for a pod that was ready.
func patchToUnready(pod *v1.Pod) []byte {
	before, after := running(pod, true, 0), running(pod, false, 0)
	ready := podrules.Next(pod, &pod.Status, &before, time.Now())
	unready := podrules.Next(pod, &ready, &after, time.Now())
	patch, err := podrules.Patch(pod.UID, &ready, &unready)
	if err != nil || patch == nil {
		panic("patch of a pod that loses readiness: there is none")
	}
	return patch
}
