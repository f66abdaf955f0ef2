package worker_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

func TestARejectedPodStaysRejected(t *testing.T) {
	story(t, func(n *node) {
		pod := newPod("web")
		n.update(pod)
		got := n.get(pod)
		if got.Phase != v1.PodFailed || got.Reason != "NoRoom" || got.Message != "Pod was rejected: it is full" {
			t.Errorf("got %s %q %q, want Failed with the reason", got.Phase, got.Reason, got.Message)
		}
		if len(got.ContainerStatuses) != 0 {
			t.Errorf("got containers %+v, want none: nothing was started", got.ContainerStatuses)
		}
		n.sleep(time.Hour)
		n.wantStarts("forever")
		if n.workers.CouldHaveRunningContainers(pod) {
			t.Error("a rejected pod is said to have running containers")
		}
		n.delete(pod, 30)
		if got := n.get(pod); got.Message != "Pod was rejected: it is full" {
			t.Errorf("deleted: got message %q, want it kept", got.Message)
		}
	}, func(o *worker.Options) {
		o.Admit = func(*v1.Pod, []*v1.Pod) *fit.Rejection {
			return &fit.Rejection{Reason: "NoRoom", Message: "it is full"}
		}
	})
}

// watchful asks, with each end that is reported, whether containers could still run.
type watchful struct {
	worker.Status
	ends func(pod *v1.Pod)
}

func (w watchful) SetPodStatus(pod *v1.Pod, status v1.PodStatus) (bool, error) {
	if podstatus.IsTerminal(status.Phase) {
		w.ends(pod)
	}
	return w.Status.SetPodStatus(pod, status)
}

// Otherwise the status manager would hold the end back, and say Pending first.
func TestARejectedPodIsKnownToBeStoppedWhenItIsReported(t *testing.T) {
	var n *node
	reported := 0
	story(t, func(started *node) {
		n = started
		n.update(newPod("web"))
		if reported != 1 {
			t.Errorf("the end was reported %d times, want once", reported)
		}
	}, func(o *worker.Options) {
		o.Admit = func(*v1.Pod, []*v1.Pod) *fit.Rejection { return &fit.Rejection{Reason: "NoRoom"} }
		o.Status = watchful{Status: o.Status, ends: func(pod *v1.Pod) {
			reported++
			if n.workers.CouldHaveRunningContainers(pod) {
				t.Error("a rejected pod is reported while it is said to have running containers")
			}
		}}
	})
}

func TestAPodThatDoesNotFitIsRejectedUntilThereIsRoom(t *testing.T) {
	small := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourcePods: resource.MustParse("10"),
	}}}
	half := func(name string) *v1.Pod {
		return newPod(name, v1.Container{Name: "main", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("600m")},
		}})
	}
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 5 * time.Second}}))
		first, second, third := half("first"), half("second"), half("third")
		n.update(first)
		n.update(second)
		got := n.get(second)
		if got.Reason != "OutOfcpu" || got.Message != "Pod was rejected: Node didn't have enough resource: cpu, requested: 600, used: 600, capacity: 1000" {
			t.Errorf("second: got %q %q, want OutOfcpu with the numbers", got.Reason, got.Message)
		}
		n.wantPhase(first, "beside it", v1.PodRunning)
		n.delete(first, 30)
		n.sleep(5 * time.Second)
		n.update(third)
		n.wantPhase(third, "once the first has ended", v1.PodRunning)
		// Deleted by force: the scheduler has given its room away, though it has not ended.
		fourth := half("fourth")
		n.remove(third)
		n.update(fourth)
		n.wantPhase(fourth, "beside one that was deleted by force", v1.PodRunning)
	}, func(o *worker.Options) {
		o.Admit = func(pod *v1.Pod, active []*v1.Pod) *fit.Rejection { return fit.Check(small, pod, active) }
	})
}

func TestAnEditedStaticPodWaitsForTheOldOne(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 10 * time.Second}}))
		first, second, third := static(newPod("web"), "1"), static(newPod("web"), "2"), static(newPod("web"), "3")
		n.update(first)
		n.remove(first)
		n.update(second) // and is edited again before it could start
		n.remove(second)
		n.update(third)
		n.sleep(9 * time.Second)
		n.wantStarts("while the first one ends", "main/0")
		n.sleep(time.Second)
		n.wantStarts("when it has ended", "main/0", "main/0")
		n.wantState(third, "main", "when it has ended", "Running")
		if all, _ := n.rt.Pods(t.Context()); len(all) != 1 {
			t.Errorf("the runtime has %d pods, want the third only", len(all))
		}
	})
}

func TestAnAPIPodDoesNotWaitForANamesake(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": stubborn}))
		first, second := newPod("web"), newPod("web")
		second.UID = "another"
		n.update(first)
		n.remove(first) // deleted by force: it may take long, or never end
		n.update(second)
		n.wantStarts("at once", "main/0", "main/0")
	})
}

func TestAStaticPodThatComesBackBeginsAnew(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 10 * time.Second}}))
		pod := withPolicy(static(newPod("web"), "1"), v1.RestartPolicyNever)
		n.update(pod)
		n.remove(pod)
		n.update(pod) // the same manifest again
		n.sleep(time.Minute)
		n.wantStarts("in the end", "main/0", "main/0")
		n.wantState(pod, "main", "in the end", "Running")
	})
}

func TestAFinishedPodIsNeverStartedAgain(t *testing.T) {
	t.Run("when the API says so", func(t *testing.T) {
		story(t, func(n *node) {
			pod := newPod("web")
			pod.Status.Phase = v1.PodFailed
			pod.Status.Reason = "Evicted"
			n.update(pod)
			n.sleep(time.Hour)
			n.wantStarts("forever")
			if got := n.get(pod); got.Phase != v1.PodFailed || got.Reason != "Evicted" {
				t.Errorf("got %s %q, want Failed as Evicted", got.Phase, got.Reason)
			}
		})
	})
	t.Run("when only the journal knows", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine()
			m.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Lives: time.Second}}))
			pod := withPolicy(newPod("job"), v1.RestartPolicyNever)
			before := m.run(t)
			before.update(pod)
			before.sleep(time.Second)
			before.wantPhase(pod, "before the restart", v1.PodSucceeded)
			before.stop()
			m.rt.Vanish(pod.UID) // not even the runtime remembers

			after := m.run(t)
			after.update(pod) // the API has not heard yet: its status is empty
			after.sleep(time.Hour)
			after.wantStarts("forever", "main/0")
			after.wantPhase(pod, "after the restart", v1.PodSucceeded)
			after.stop()
		})
	})
}

func TestContainersAreAdoptedAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Script(func(pod *v1.Pod, _ *v1.Container, attempt int) runtimefake.Behavior {
			if pod.Name == "crash" && attempt == 0 {
				return runtimefake.Behavior{Lives: time.Second, ExitCode: 1}
			}
			return runtimefake.Behavior{}
		})
		web, crash, job := newPod("web"), newPod("crash"), withPolicy(newPod("job"), v1.RestartPolicyNever)
		before := m.run(t)
		for _, pod := range []*v1.Pod{web, crash, job} {
			before.update(pod)
		}
		before.sleep(time.Minute)
		ids := map[string]string{"web": before.container(web, "main").ContainerID, "crash": before.container(crash, "main").ContainerID}
		for _, pod := range []*v1.Pod{web, crash, job} { // what the API has by now
			pod.Status = before.get(pod)
		}
		before.stop()
		m.rt.Exit(before.newest(job, "main").ID, runtimefake.Exit{Code: 3}) // while no process looks
		starts := len(before.starts())

		after := m.run(t, func(o *worker.Options) {
			o.Admit = func(*v1.Pod, []*v1.Pod) *fit.Rejection { return &fit.Rejection{Reason: "Full"} }
		})
		for _, pod := range []*v1.Pod{web, crash, job} {
			after.update(pod)
		}
		after.workers.SourcesReady()
		after.sleep(time.Minute)
		if got := len(after.starts()); got != starts {
			t.Errorf("started %d times, want %d as before the restart", got, starts)
		}
		after.wantState(web, "main", "web", "Running")
		after.wantState(crash, "main", "crash", "Running restarts=1 last=1:Error")
		for _, pod := range []*v1.Pod{web, crash} {
			if got := after.container(pod, "main").ContainerID; got != ids[pod.Name] {
				t.Errorf("%s: container ID %s, want %s", pod.Name, got, ids[pod.Name])
			}
		}
		after.wantPhase(job, "the job", v1.PodFailed)
		after.wantState(job, "main", "the job", "Terminated 3:Error")
		after.stop()
	})
}

func TestOrphansAreEndedOnceAllSourcesHaveSpoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		orphan, kept := newPod("orphan"), newPod("kept")
		before := m.run(t)
		before.update(orphan)
		before.update(kept)
		before.stop()

		after := m.run(t)
		after.update(kept)
		after.sleep(time.Hour)
		if c := after.newest(orphan, "main"); c.State != runtime.Running {
			t.Errorf("before the sources have spoken: got %+v, want it running", c)
		}
		if !after.workers.CouldHaveRunningContainers(orphan) {
			t.Error("before the sources have spoken: an unknown pod is said to have no running containers")
		}
		after.workers.SourcesReady()
		after.sleep(time.Second)
		all, _ := after.rt.Pods(t.Context())
		if len(all) != 1 || all[0].Manifest.Name != "kept" {
			t.Errorf("after the sources have spoken: got %+v, want kept only", all)
		}
		if after.workers.CouldHaveRunningContainers(orphan) {
			t.Error("an orphan that has ended is said to have running containers")
		}
		if got, ok := after.status.GetPodStatus(orphan.UID); ok {
			t.Errorf("a status of the orphan was reported: %+v", got)
		}
		after.stop()
	})
}

func TestAStaticPodEditedWhileTheProcessWasDownWaitsForTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 10 * time.Second}}))
		before := m.run(t)
		before.update(static(newPod("web"), "1"))
		before.stop()

		after, edited := m.run(t), static(newPod("web"), "2")
		after.update(edited)
		after.sleep(time.Minute)
		after.wantStarts("before the sources have spoken", "main/0")
		after.workers.SourcesReady()
		after.sleep(9 * time.Second)
		after.wantStarts("while the old one ends", "main/0")
		after.sleep(time.Second)
		after.wantStarts("when it has ended", "main/0", "main/0")
		after.stop()
	})
}

func TestASlowPodDelaysNoOther(t *testing.T) {
	story(t, func(n *node) {
		release := make(chan struct{})
		n.rt.Script(func(pod *v1.Pod, _ *v1.Container, _ int) runtimefake.Behavior {
			if pod.Name == "slow" {
				<-release
			}
			return runtimefake.Behavior{}
		})
		slow, fast := newPod("slow"), newPod("fast")
		n.update(slow)
		n.update(fast)
		n.wantPhase(fast, "beside a pod that hangs", v1.PodRunning)
		n.delete(fast, 30)
		n.wantPhase(fast, "deleted beside a pod that hangs", v1.PodFailed)
		n.wantPhase(slow, "hanging", v1.PodPending)
		close(release)
		synctest.Wait()
		n.wantPhase(slow, "released", v1.PodRunning)
	})
}

func TestTheEndOfAContainerIsRecordedBeforeItIsReported(t *testing.T) {
	story(t, func(n *node) {
		n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Lives: time.Second, ExitCode: 3}}))
		pod := newPod("web")
		n.update(pod)
		n.sleep(time.Second)
		if how, ok := n.journal.Termination("fake://1"); !ok || how.ExitCode != 3 {
			t.Errorf("journal: got %+v, %v; want exit 3", how, ok)
		}
	})
}

func TestResourcesAreRecordedAndFollowAResize(t *testing.T) {
	story(t, func(n *node) {
		pod := newPod("web", v1.Container{Name: "main", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")},
		}})
		n.update(pod)
		allocated := func() string {
			got, _ := n.status.GetContainerResourceAllocation(pod.UID, "main")
			return got.Requests.Cpu().String()
		}
		if got := allocated(); got != "100m" {
			t.Errorf("admitted: allocation %s, want 100m", got)
		}
		bigger := pod.DeepCopy()
		bigger.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("200m")
		n.update(bigger)
		reported := n.container(pod, "main").AllocatedResources
		if got, shown := allocated(), reported.Cpu().String(); got != "200m" || shown != "200m" {
			t.Errorf("resized: allocation %s, status %s, want 200m", got, shown)
		}
		n.wantStarts("resized", "main/0")
	})
}

func TestReadinessGatesSeeTheConditionsOfOthers(t *testing.T) {
	story(t, func(n *node) {
		pod := newPod("web")
		pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/lb"}}
		n.update(pod)
		ready := func() v1.ConditionStatus {
			return podstatus.FindCondition(n.get(pod).Conditions, v1.PodReady).Status
		}
		if got := ready(); got != v1.ConditionFalse {
			t.Errorf("before the gate opens: Ready is %s", got)
		}
		open := pod.DeepCopy()
		open.Status.Conditions = []v1.PodCondition{{Type: "example.com/lb", Status: v1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		n.update(open)
		if got := ready(); got != v1.ConditionTrue {
			t.Errorf("after the gate has opened: Ready is %s", got)
		}
	})
}

func TestNothingIsStartedBeforeTheRuntimeHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Fail("Pods", errors.New("not yet"), errors.New("not yet"))
		n := m.run(t)
		pod := newPod("web")
		n.update(pod)
		n.wantStarts("before the answer")
		n.sleep(2 * time.Second)
		n.wantStarts("after the answer", "main/0")
		n.stop()
	})
}

func TestMirrorPodsAreIgnored(t *testing.T) {
	story(t, func(n *node) {
		mirror := newPod("web")
		mirror.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
		n.update(mirror)
		n.wantStarts("never")
		n.remove(mirror)
	})
}

func TestOptionsSayWhatIsMissing(t *testing.T) {
	_, err := worker.New(worker.Options{Resync: -1})
	for _, want := range []string{"Runtime", "Status", "Resync"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}

func TestRunMayBeCalledOnce(t *testing.T) {
	story(t, func(n *node) {
		if err := n.workers.Run(t.Context()); !errors.Is(err, worker.ErrRunning) {
			t.Errorf("second Run: got %v, want %v", err, worker.ErrRunning)
		}
	})
}
