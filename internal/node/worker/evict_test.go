package worker_test

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
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
				n.rt.Script(lives(map[string]runtimefake.Behavior{"main": stubborn}))
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

// whileStopped notes what the manager holds of a pod when its status is replaced although the
// pod is said to have no running container.
type whileStopped struct {
	worker.Status
	n   *node
	old []v1.PodStatus
}

func (w *whileStopped) SetPodStatus(pod *v1.Pod, status v1.PodStatus) (bool, error) {
	if old, ok := w.GetPodStatus(pod.UID); ok && !w.n.workers.CouldHaveRunningContainers(pod) {
		w.old = append(w.old, old)
	}
	return w.Status.SetPodStatus(pod, status)
}

// Failed is withheld from the API while a container could run. Once none could, the status
// must not name one that does.
func TestTheEndOfAnEvictedPodIsNotPublishedWithRunningContainers(t *testing.T) {
	var seen *whileStopped
	story(t, func(n *node) {
		seen.n = n
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": stubborn}))
		pod := newPod("web")
		n.update(pod)
		n.sleep(time.Minute)
		n.workers.Evict(pod.UID, shutdown)
		n.sleep(time.Minute)
		for _, old := range seen.old {
			if old.ContainerStatuses[0].State.Running != nil {
				t.Errorf("the pod could not have running containers, and the manager held %s with %+v", old.Phase, old.ContainerStatuses[0].State)
			}
		}
		n.wantState(pod, "main", "in the end", "Terminated 137:Error")
	}, func(o *worker.Options) {
		seen = &whileStopped{Status: o.Status}
		o.Status = seen
	})
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

// A critical pod that does not fit makes another one leave, and starts once it has ended.
func TestACriticalPodPreempts(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 5 * time.Second}}))
		victim, other := cpus(newPod("victim"), "600m", ""), cpus(newPod("other"), "100m", "")
		n.update(victim)
		n.update(other)
		critical := static(cpus(newPod("critical"), "800m", ""), "1")
		n.update(critical)
		n.sleep(2 * time.Second)
		n.workers.Sync(critical.UID) // it looks again, and still waits
		n.sleep(2 * time.Second)
		n.wantPhase(other, "one that need not go", v1.PodRunning)
		n.wantStarts("while the victim ends", "main/0", "main/0")
		n.sleep(time.Second)
		n.wantPhase(critical, "when it has ended", v1.PodRunning)
		got := n.get(victim)
		if target := podstatus.FindCondition(got.Conditions, v1.DisruptionTarget); got.Phase != v1.PodFailed || got.Reason != "Preempting" || target == nil {
			t.Errorf("the victim is %s %q %q, condition %v; want it preempted", got.Phase, got.Reason, got.Message, target)
		}
		n.wantPhase(other, "one that need not go", v1.PodRunning)
		if want := "Preempting: Preempted in order to admit critical pod"; !n.events.has(want) {
			t.Errorf("got events %q, want %q", n.events.all, want)
		}

		late := static(cpus(newPod("late"), "500m", ""), "2")
		n.update(late)
		n.wantPhase(late, "beside critical pods only", v1.PodFailed)
		n.wantPhase(other, "which would not be enough", v1.PodRunning)
		plain := cpus(newPod("plain"), "800m", "")
		n.update(plain)
		n.wantPhase(plain, "one that is not critical", v1.PodFailed)
	}, func(o *worker.Options) {
		node := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}
		o.Admit = func(pod *v1.Pod, active []*v1.Pod) *fit.Rejection { return fit.Check(node, pod, active) }
	})
}

func TestReclaimDeletesWhatDeadPodsHave(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(func(pod *v1.Pod, _ *v1.Container, _ int) runtimefake.Behavior {
			if pod.Name == "job" {
				return runtimefake.Behavior{Lives: time.Second}
			}
			return runtimefake.Behavior{}
		})
		n.update(withPolicy(newPod("job"), v1.RestartPolicyNever))
		n.update(newPod("web"))
		n.sleep(time.Second)
		if err := n.workers.Reclaim(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls := n.rt.Calls()
		if !slices.Contains(calls, "RemoveLogs job-uid") || slices.Contains(calls, "RemoveLogs web-uid") || slices.Contains(calls, "RemoveVolumes web-uid") {
			t.Errorf("got calls %q, want the logs of the job removed and nothing of web", calls)
		}
	})
}
