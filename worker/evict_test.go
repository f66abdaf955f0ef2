package worker_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/runtimefake"
	"github.com/statusd/statusd/worker"
)

var shutdown = worker.Eviction{
	Grace: 10 * time.Second, Reason: "Terminated", Message: "the machine goes down",
	Condition: &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "TerminationByKubelet"},
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// An evicted pod ends within the grace of the eviction or its own, whichever is shorter, and is
// Failed with the reason of the eviction.
func TestAnEvictedPodEndsAndIsFailed(t *testing.T) {
	for _, c := range []struct {
		story string
		own   int64
		want  time.Duration
	}{{"in the grace of the eviction", 30, 10 * time.Second}, {"in its own grace", 4, 4 * time.Second}} {
		t.Run(c.story, func(t *testing.T) {
			story(t, func(n *node) {
				n.rt.Script(lives(map[string]runtimefake.Behaviour{"main": stubborn}))
				pod := newPod("web")
				pod.Spec.TerminationGracePeriodSeconds = &c.own
				n.update(pod)
				n.sleep(time.Minute)
				since := time.Now()
				if !n.workers.Evict(pod.UID, shutdown) {
					t.Fatal("the pod is not known")
				}
				gone := n.workers.Stopped(pod.UID)
				n.sleep(time.Second)
				if isClosed(gone) || n.workers.Evict(pod.UID, shutdown) {
					t.Error("the pod counts as ended, or can be evicted twice, while its container runs")
				}
				n.sleep(time.Minute)
				if got := n.ended(pod, "main", since); got != c.want || !isClosed(gone) {
					t.Errorf("the container ended after %v (told: %t), want %v", got, isClosed(gone), c.want)
				}
				got := n.get(pod)
				target := podstatus.FindCondition(got.Conditions, v1.DisruptionTarget)
				if got.Phase != v1.PodFailed || got.Reason != "Terminated" || got.Message != "the machine goes down" || target == nil || target.Reason != "TerminationByKubelet" {
					t.Errorf("got %s %q %q, condition %v; want Failed as the eviction says", got.Phase, got.Reason, got.Message, target)
				}
				n.wantStarts("once", "main/0")
			})
		})
	}
}

// A pod that is held is stopped, keeps its phase, and goes on when it may, or in the next process.
func TestAHeldPodGoesOn(t *testing.T) {
	story(t, func(n *node) {
		pod := static(newPod("web"), "static")
		n.update(pod)
		n.sleep(time.Minute)
		held := shutdown
		held.Hold = true
		n.workers.Evict(pod.UID, held)
		gone := n.workers.Stopped(pod.UID)
		n.sleep(time.Minute)
		if c := n.newest(pod, "main"); c.State != runtime.Exited || !isClosed(gone) {
			t.Errorf("the container is %s (told: %t), want that it has ended", c.State, isClosed(gone))
		}
		n.wantPhase(pod, "held", v1.PodRunning)
		if got := n.get(pod); got.Reason != "" {
			t.Errorf("got reason %q, want none", got.Reason)
		}
		n.workers.Resume(pod.UID)
		n.sleep(time.Minute)
		if c := n.newest(pod, "main"); c.State != runtime.Running || c.Attempt != 1 {
			t.Errorf("the container is %s, attempt %d; want that it runs again", c.State, c.Attempt)
		}
		n.wantPhase(pod, "resumed", v1.PodRunning)
	})
}
