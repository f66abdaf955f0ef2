package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

// smallNode is a node of one CPU that takes two pods.
func smallNode(o *worker.Options) {
	small := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourcePods: resource.MustParse("2"),
	}}}
	o.Admit = func(pod *v1.Pod, active []*v1.Pod) *fit.Rejection { return fit.Check(small, pod, active) }
}

// big asks for more than half of a small node, and for a port.
func big(name string) *v1.Pod {
	return newPod(name, v1.Container{
		Name:      "main",
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("600m")}},
		Ports:     []v1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: v1.ProtocolTCP}},
	})
}

func TestFinishedPodsTakeNoRoomAfterARestart(t *testing.T) {
	for _, c := range []struct {
		story   string
		policy  v1.RestartPolicy
		exit    int32
		deleted bool // the API does not have it any more
		told    bool // the API knows that it has ended
		want    v1.PodPhase
	}{
		{"a job that was deleted meanwhile", v1.RestartPolicyNever, 0, true, true, v1.PodRunning},
		{"a job that the API knows to be finished", v1.RestartPolicyNever, 0, false, true, v1.PodRunning},
		{"a job that ended while no process looked", v1.RestartPolicyNever, 1, false, false, v1.PodRunning},
		{"a dead server that was deleted meanwhile", v1.RestartPolicyAlways, 1, true, false, v1.PodRunning},
		{"a dead server that is to run again", v1.RestartPolicyAlways, 1, false, false, v1.PodFailed},
	} {
		t.Run(c.story, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine()
				job, next := withPolicy(big("job"), c.policy), big("next")
				before := m.run(t, smallNode)
				before.update(job)
				if !c.told {
					job.Status = before.get(job)
					before.stop()
				}
				m.rt.Exit(before.newest(job, "main").ID, runtimefake.Exit{Code: c.exit})
				synctest.Wait()
				if c.told {
					job.Status = before.get(job)
					before.stop()
				}

				after := m.run(t, smallNode)
				if !c.deleted {
					after.workers.Update(job)
				}
				after.update(next)
				after.wantPhase(next, "beside it", c.want)
				after.stop()
			})
		})
	}
}

func TestFinishedPodsDoNotCountAsPodsAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Lives: time.Second}}))
		before := m.run(t, smallNode)
		for _, name := range []string{"a", "b"} {
			before.update(withPolicy(newPod(name), v1.RestartPolicyNever))
		}
		before.sleep(time.Second)
		before.stop()
		after, next := m.run(t, smallNode), newPod("next")
		after.update(next)
		after.wantPhase(next, "beside two finished pods", v1.PodRunning)
		after.stop()
	})
}

func TestADeadOldVersionOfAStaticPodBlocksNothing(t *testing.T) {
	for _, c := range []struct {
		story string
		when  string // the old one ends
	}{
		{"it ended while the process was down", "before"},
		{"it ends before the sources have spoken", "after"},
		{"the runtime has lost it", "lost"},
	} {
		t.Run(c.story, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine()
				before, old := m.run(t), static(newPod("web"), "1")
				before.update(old)
				before.stop()
				if c.when == "before" {
					m.rt.Exit("fake://1", runtimefake.Exit{Code: 1})
				}
				after, edited := m.run(t), static(newPod("web"), "2")
				after.update(edited) // the API is down: it has not spoken
				switch c.when {
				case "after":
					after.wantStarts("while the old one runs", "main/0")
					m.rt.Exit("fake://1", runtimefake.Exit{Code: 1})
				case "lost":
					m.rt.Vanish(old.UID)
				}
				synctest.Wait()
				after.wantStarts("when the old one is dead", "main/0", "main/0")
				after.wantState(edited, "main", "when the old one is dead", "Running")
				after.stop()
			})
		})
	}
}

func TestAStaticOrphanIsEndedOnceTheManifestsWereRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Script(lives(map[string]runtimefake.Behavior{"main": {StopsAfter: 10 * time.Second}}))
		before, other := m.run(t), newPod("other")
		before.update(static(newPod("web"), "1"))
		before.update(other)
		before.stop()

		after, edited := m.run(t), static(newPod("web"), "2")
		after.update(edited)
		after.workers.ManifestsReady()
		after.sleep(9 * time.Second)
		after.wantStarts("while the old one ends", "main/0", "main/0")
		after.sleep(time.Second)
		after.wantState(edited, "main", "when it has ended, without a word of the API", "Running")
		if c := after.newest(other, "main"); c.State != runtime.Running {
			t.Errorf("the pod of the API, which has not spoken, is %s", c.State)
		}
		after.stop()
	})
}

func TestAnAPIPodDoesNotBlockAStaticPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		before, namesake := m.run(t), newPod("web")
		before.update(namesake)
		manifest := static(newPod("web"), "1")
		before.update(manifest)
		before.wantState(manifest, "main", "beside a pod of the API", "Running")
		before.stop()

		m = newMachine()
		before = m.run(t)
		before.update(namesake)
		before.stop()
		after := m.run(t)
		after.update(manifest)
		after.wantState(manifest, "main", "beside a pod of the API that an earlier process has left", "Running")
		after.stop()
	})
}

func TestUnsentEndsStayWhenAStaticPodComesBackBeforeTheAPISpeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.Script(func(pod *v1.Pod, _ *v1.Container, _ int) runtimefake.Behavior {
			if pod.Name == "job" {
				return runtimefake.Behavior{Lives: time.Second}
			}
			return runtimefake.Behavior{StopsAfter: 10 * time.Second}
		})
		before, job := m.run(t), withPolicy(newPod("job"), v1.RestartPolicyNever)
		before.update(job)
		before.sleep(time.Second)
		before.wantPhase(job, "before the restart", v1.PodSucceeded)
		before.stop()

		after, web := m.run(t), static(newPod("web"), "1")
		after.update(web)
		after.workers.ManifestsReady()
		after.remove(web)
		after.update(web) // the manifest comes back while its pod ends
		after.sleep(time.Minute)
		after.wantState(web, "main", "back again", "Running")
		if got, ok := after.status.GetPodStatus(job.UID); !ok || got.Phase != v1.PodSucceeded {
			t.Errorf("the end of the job, which the API has not heard of: got %v %s, want Succeeded", ok, got.Phase)
		}
		if finals := m.journal.Finals(); len(finals) != 1 {
			t.Errorf("the journal has %d final statuses, want that of the job", len(finals))
		}
		after.stop()
	})
}

func TestAShutdownDoesNotFailAPostStartHook(t *testing.T) {
	for range 50 { // which of two events the worker sees first is random
		synctest.Test(t, func(t *testing.T) {
			m := newMachine()
			n := m.run(t, quiet)
			pod := newPod("web", v1.Container{Name: "main", Lifecycle: &v1.Lifecycle{
				PostStart: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 60}},
			}})
			n.update(pod)
			n.workers.Sync(pod.UID) // a turn waits while the shutdown comes
			n.stop()
			if c := n.newest(pod, "main"); c.State != runtime.Running {
				t.Fatalf("after the shutdown the container is %s, want it to run on; calls %q", c.State, m.rt.Calls())
			}
			if n.events.begins("main FailedPostStartHook: PostStartHook failed") {
				t.Fatal("the hook is said to have failed")
			}
		})
	}
}

func TestAClockThatStepsChangesNoBackOff(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		story           string
		started, exited time.Duration // the clock of the records, against that of this process
	}{
		{"the clock is right", 0, 0},
		{"ahead by a day", day, day},
		{"behind by a day", -day, -day},
		{"it goes ahead before the end", 0, day},
		{"it goes back before the end", 0, -day},
		{"it starts in 1970", -30 * 365 * day, -30 * 365 * day},
		{"it is set from 1970", -30 * 365 * day, 0},
	} {
		t.Run(c.story, func(t *testing.T) {
			story(t, func(n *node) {
				n.rt.Script(lives(map[string]runtimefake.Behavior{"main": {Lives: time.Second, ExitCode: 1}}))
				n.rt.SetClock(c.started)
				n.update(newPod("web"))
				n.rt.SetClock(c.exited)
				n.sleep(time.Second)
				n.wantStarts("the first restart is at once", "main/0", "main/1")
				n.sleep(10 * time.Second)
				n.wantStarts("the second waits 10 s", "main/0", "main/1")
				n.sleep(time.Second)
				n.wantStarts("the second waits 10 s", "main/0", "main/1", "main/2")
			})
		})
	}
}

func TestAnExitInTheFutureIsRestartedAtOnceAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.rt.SetClock(24 * time.Hour)
		before, pod := m.run(t), newPod("web")
		before.update(pod)
		before.stop()
		m.rt.Exit("fake://1", runtimefake.Exit{Code: 1})
		m.rt.SetClock(0) // the machine boots without a clock of its own
		after := m.run(t)
		after.update(pod)
		after.wantState(pod, "main", "at once", "Running restarts=1 last=1:Error")
		after.stop()
	})
}
