package status

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

var (
	_ Journal = journal.NewMemory()
	_ Journal = (*journal.Durable)(nil)
)

func withJournal(j Journal) func(*Options) { return func(o *Options) { o.Journal = j } }

// brokenJournal is a journal whose disk is full.
type brokenJournal struct{ Journal }

var errDiskFull = errors.New("no space left on device")

func (brokenJournal) SetFinal(types.UID, podstatus.Final) error { return errDiskFull }
func (brokenJournal) SetPodAllocation(types.UID, podstatus.Allocation) error {
	return errDiskFull
}

func TestFinalStatusesSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		first := newWorld(t, withJournal(memory))
		pod := first.create("job", restartNever)
		first.run()
		first.api.SetFault(func(context.Context, statustest.Request) error { return errors.New("connection refused") })
		first.set(pod, ended(pod, 3))
		synctest.Wait()
		version := first.manager.cache.load(pod.UID).version
		first.stop() // the process ends; the status never left the node

		second := newWorld(t, withJournal(memory))
		second.api.Restore(first.api.Backup())
		second.table.Set(second.api.Pod(pod))
		if status, ok := second.manager.GetPodStatus(pod.UID); !ok || status.Phase != v1.PodFailed {
			t.Fatalf("after the restart the cache says %s, %v; want Failed", status.Phase, ok)
		}
		if got := second.manager.cache.load(pod.UID).version; got < version {
			t.Errorf("the version went from %d to %d", version, got)
		}
		_, err := second.manager.SetPodStatus(pod, running(pod, true))
		if err == nil {
			t.Error("the pod was reported running again after it had ended")
		}
		second.run()
		synctest.Wait()
		got := second.api.Pod(pod).Status
		if got.Phase != v1.PodFailed || got.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
			t.Errorf("the API says %+v, want Failed with exit code 3", got)
		}
		if kept := memory.Finals(); kept[pod.UID].Status.Phase != v1.PodFailed {
			t.Errorf("the journal has %v, want the end of the pod until the pod is gone", kept)
		}
	})
}

func TestFinishedFlagSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		first := newWorld(t, withJournal(memory))
		pod := first.create("job", restartNever, deleting)
		first.run()
		first.api.SetFault(func(context.Context, statustest.Request) error { return errors.New("connection refused") })
		first.set(pod, ended(pod, 0))
		must(first.manager.TerminatePod(pod))
		first.stop()

		second := newWorld(t, withJournal(memory))
		second.api.Restore(first.api.Backup())
		second.table.Set(second.api.Pod(pod))
		second.api.SetFault(nil)
		second.run()
		pass(time.Second)
		if second.api.Pod(pod) != nil {
			t.Error("the finished pod was not deleted after the restart")
		}
	})
}

func TestJournalForgetsPodsThatAreGoneFromTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		pod := newPod("job")
		must(memory.SetFinal(pod.UID, podstatus.Final{Namespace: "ns", Name: "job", Version: 4, Status: ended(pod, 1)}))
		w := newWorld(t, withJournal(memory))
		w.run()
		synctest.Wait()
		if left := memory.Finals(); len(left) != 0 {
			t.Errorf("the journal still holds %v although the pod is gone", left)
		}
	})
}

func TestTerminatePodUsesObservedTerminations(t *testing.T) {
	for _, id := range []string{"process://job-uid", "process://not UTF-8 \xff"} {
		memory := journal.NewMemory()
		pod := newPod("job", restartNever)
		m := standalone(t, pod)
		m.opts.Journal = memory
		reported := running(pod, true)
		reported.ContainerStatuses[0].ContainerID = id
		if _, err := m.SetPodStatus(pod, reported); err != nil {
			t.Fatal(err)
		}
		must(m.SetContainerReadiness(pod.UID, id, false))
		must(m.ObserveTermination(pod.UID, id, v1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "out of cheese"}))
		must(m.TerminatePod(pod))
		status, _ := m.GetPodStatus(pod.UID)
		how := status.ContainerStatuses[0].State.Terminated
		if how == nil || how.ExitCode != 3 || how.Message != "out of cheese" {
			t.Errorf("%q ended with %+v, want what was observed", id, how)
		}
	}
}

func TestJournalThatFailsIsReportedAndStatusesStillFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, withJournal(brokenJournal{journal.NewMemory()})).runWith("job", restartNever)
		w.api.SetLatency(time.Second) // a status that is delivered before the report returns needs no journal
		changed, err := w.manager.SetPodStatus(pod, ended(pod, 1))
		if !changed || !errors.Is(err, errDiskFull) {
			t.Errorf("SetPodStatus: %v, %v; want it stored, and the journal's error", changed, err)
		}
		time.Sleep(2 * time.Second)
		w.wantLog("sent all the same", "PATCH ns/job")
		if got := w.counter("statusd_journal_write_errors_total"); got < 1 {
			t.Errorf("%v journal errors counted, want them all", got)
		}
		if err := w.manager.SetPodAllocation(pod); !errors.Is(err, errDiskFull) {
			t.Errorf("SetPodAllocation: %v, want the journal's error", err)
		}
	})
}

func TestAllocationsGoThroughTheJournal(t *testing.T) {
	pod := newPod("web", func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")}
	})
	m := standalone(t, pod)
	if err := m.SetPodAllocation(pod); err != nil {
		t.Errorf("without a journal: %v, want none: the spec says what the pod has", err)
	}
	if _, ok := m.GetContainerResourceAllocation(pod.UID, "main"); ok {
		t.Error("there is an allocation without a journal")
	}
	memory := journal.NewMemory()
	m.opts.Journal = memory
	must(m.SetPodAllocation(pod))
	got, ok := m.GetContainerResourceAllocation(pod.UID, "main")
	if cpu := got.Requests[v1.ResourceCPU]; !ok || cpu.String() != "250m" {
		t.Errorf("allocated %v, %v; want 250m", got, ok)
	}
	m.RemoveOrphanedStatuses(nil)
	if _, ok := m.GetContainerResourceAllocation(pod.UID, "main"); ok {
		t.Error("the orphan's allocation is still in the journal")
	}
}

func TestResizeConditionsSurviveARestartWithTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		first := newWorld(t, withJournal(memory))
		first.manager.Resizes().SetPodResizePendingCondition("uid", "Deferred", "no room", 3)
		want := first.manager.Resizes().GetPodResizeConditions("uid")
		time.Sleep(time.Hour)
		second := newWorld(t, withJournal(memory))
		got := second.manager.Resizes().GetPodResizeConditions("uid")
		if len(got) != 1 || !got[0].LastTransitionTime.Equal(&want[0].LastTransitionTime) || got[0].ObservedGeneration != 3 {
			t.Errorf("after the restart: %+v, want %+v", got, want)
		}
	})
}

// A pod is evicted, which the journal keeps; its container stops, which the API server has and a full disk does not
// let the journal know. The next process finds the older end in the journal.
func TestOlderEndOfTheJournal_DoesNotReplaceTheEndInTheAPI(t *testing.T) {
	for name, next := range map[string]func(*world, *v1.Pod){
		"no report": func(w *world, _ *v1.Pod) { w.run() },
		"finished before the first turn": func(w *world, pod *v1.Pod) {
			must(w.manager.TerminatePod(pod))
			w.run()
		},
	} {
		for kind, older := range map[string]func(*v1.Pod) v1.PodStatus{
			"running": evicted,
			"bare":    func(*v1.Pod) v1.PodStatus { return evictedBare() },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					memory := journal.NewMemory()
					pod := newPod("job", restartNever)
					must(memory.SetFinal(pod.UID, podstatus.Final{Namespace: pod.Namespace, Name: pod.Name, Version: 4, Vanished: kind == "bare", Status: older(pod)}))
					w := newWorld(t, withJournal(memory))
					pod = w.create("job", restartNever, func(p *v1.Pod) { p.Status = ended(p, 3) })
					next(w, pod)
					time.Sleep(time.Minute)
					got := w.api.Pod(pod).Status
					if end := got.ContainerStatuses; got.Reason != "" || len(end) != 1 || end[0].State.Terminated == nil || end[0].State.Terminated.ExitCode != 3 {
						t.Errorf("the API says %s %s %+v, want the end with exit code 3", got.Phase, got.Reason, end)
					}
					if version := w.manager.cache.load(pod.UID).version; version < 5 {
						t.Errorf("version %d, want one after that of the journal, 4", version)
					}
					kept := memory.Finals()[pod.UID].Status.ContainerStatuses
					if len(kept) != 1 || kept[0].State.Terminated == nil || kept[0].State.Terminated.ExitCode != 3 {
						t.Errorf("the journal has %+v, want the newer end, which the API server has", kept)
					}
				})
			})
		}
	}
}
