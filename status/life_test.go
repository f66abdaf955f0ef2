package status

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

func v1Reason(reason string) metav1.StatusReason { return metav1.StatusReason(reason) }

// The end of a static pod is not kept: under its UID it begins another life.
func TestStaticPodsHaveNoFinals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w := newWorld(t, withJournal(memory))
		static := newPod("etcd", staticPod, restartNever)
		w.table.Set(static)
		w.run()
		w.set(static, ended(static, 1))
		must(w.manager.TerminatePod(static))
		if left := memory.Finals(); len(left) > 0 {
			t.Errorf("the journal has %v", left)
		}
		w.set(static, running(static, true)) // its manifest is back, in the same process
		if status, _ := w.manager.GetPodStatus(static.UID); status.Phase != v1.PodRunning {
			t.Errorf("the static pod is %s in its second life", status.Phase)
		}
	})
}

// A journal of an earlier version may hold the end of a static pod.
func TestFinalOfAStaticPodDoesNotPinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		static := newPod("etcd", staticPod)
		must(memory.SetFinal(static.UID, podstatus.Final{Namespace: "ns", Name: "etcd", Version: 3, Status: ended(static, 1)}))
		w := newWorld(t, withJournal(memory))
		_, mirror := w.createStatic("etcd")
		w.run()
		w.set(static, running(static, true))
		pass(time.Minute)
		if got := w.api.Pod(mirror).Status.Phase; got != v1.PodRunning {
			t.Errorf("the mirror says %s", got)
		}
	})
}

// A manager without a server restores no ends: none would ever accept them.
func TestStandaloneKeepsNoFinals(t *testing.T) {
	memory := journal.NewMemory()
	pod := newPod("job", restartNever)
	must(memory.SetFinal(pod.UID, podstatus.Final{Namespace: "ns", Name: "job", Version: 3, Status: ended(pod, 1)}))
	w := newWorld(t, withJournal(memory), func(o *Options) { o.Client = nil })
	if _, ok := w.manager.GetPodStatus(pod.UID); ok {
		t.Error("the end of another life was restored")
	}
	other := newPod("other", restartNever)
	if _, err := w.manager.SetPodStatus(other, ended(other, 1)); err != nil {
		t.Fatal(err)
	}
	if _, kept := memory.Finals()[other.UID]; kept {
		t.Error("an end was kept that no server can accept")
	}
}

// The journal's memory of a crash loop is bounded.
func TestEndsOfContainersAreForgottenWhenTheAPIHasMovedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w, pod := newWorld(t, withJournal(memory)).runWith("loop")
		kept := func() (n int) {
			for i := range 1001 {
				if _, ok := memory.Termination(fmt.Sprint("process://", i)); ok {
					n++
				}
			}
			return n
		}
		for i := range 1000 {
			id := fmt.Sprint("process://", i)
			how := v1.ContainerStateTerminated{ExitCode: 1, ContainerID: id}
			must(w.manager.ObserveTermination(pod.UID, id, how))
			// A report that does not know of the end yet must not cost it.
			early := running(pod, i%2 == 0)
			early.Message = fmt.Sprint("before ", i)
			early.ContainerStatuses[0].ContainerID = fmt.Sprint("process://", max(i-1, 0))
			w.report(pod, early)
			if _, ok := memory.Termination(id); !ok {
				t.Fatalf("the end of %s is forgotten before it was reported", id)
			}
			status := running(pod, true)
			status.ContainerStatuses[0].ContainerID = fmt.Sprint("process://", i+1)
			status.ContainerStatuses[0].LastTerminationState.Terminated = &how
			w.report(pod, status)
		}
		if got := kept(); got > 2 {
			t.Errorf("%d of 1000 ends are kept, want the last", got)
		}
	})
}

// Providers change the status of the pod that they were given and pass it on.
func TestFirstReportIsComparedWithTheAPIsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		provider := pod.DeepCopy()
		provider.Status = running(pod, true)
		if _, err := w.manager.SetPodStatus(provider, provider.Status); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, c := range w.api.Pod(pod).Status.Conditions {
			if c.LastTransitionTime.IsZero() {
				t.Errorf("%s has no transition time", c.Type)
			}
		}
		ending := w.create("job", restartNever)
		provider = ending.DeepCopy()
		provider.Status = ended(ending, 3)
		if _, err := w.manager.SetPodStatus(provider, provider.Status); err != nil {
			t.Fatal(err)
		}
		if got := w.counter("statusd_terminated_containers_total"); got != 1 {
			t.Errorf("%v ends counted, want 1", got)
		}
	})
}

// The status of an eviction does not mention the containers. That does not say that they have stopped.
func TestContainersThatAreNoLongerReportedCouldRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		evicted, rejected, seen := w.create("evicted", restartNever), w.create("rejected", restartNever), w.create("seen", restartNever)
		w.api.Change(seen, func(p *v1.Pod) { p.Status = running(p, true) })
		w.run()
		w.set(evicted, running(evicted, true))
		synctest.Wait()
		for _, pod := range []*v1.Pod{evicted, rejected, seen} {
			w.set(pod, v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted"})
		}
		time.Sleep(time.Minute)
		for _, pod := range []*v1.Pod{evicted, seen} {
			if got := w.api.Pod(pod).Status.Phase; got != v1.PodRunning {
				t.Errorf("%s: the API says %s while the container could run", pod.Name, got)
			}
		}
		if got := w.api.Pod(rejected).Status.Phase; got != v1.PodFailed {
			t.Errorf("the API says %s of a pod that never ran", got)
		}
		must(w.manager.TerminatePod(evicted))
		w.set(seen, ended(seen, 137))
		pass(11 * time.Second)
		for _, pod := range []*v1.Pod{evicted, seen} {
			if got := w.api.Pod(pod).Status.Phase; got != v1.PodFailed {
				t.Errorf("%s: the API says %s after the end", pod.Name, got)
			}
		}
	})
}

// Flush does not wait for what nothing will change any more.
func TestFlushAsksOnceMoreAboutAWithheldPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := newWorld(t, func(o *Options) { o.Safety = g }).runWith("job", restartNever)
		w.set(pod, ended(pod, 1))
		time.Sleep(time.Minute)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.manager.Flush(ctx); err != nil || time.Since(begin) > time.Second {
			t.Errorf("Flush: %v after %v", err, time.Since(begin))
		}
		g.running.Store(false)
		if err := w.manager.Flush(ctx); err != nil {
			t.Errorf("Flush: %v", err)
		}
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodFailed {
			t.Errorf("the API says %s after Flush", got)
		}
	})
}

// sickJournal fails, or hangs, when it is set to.
type sickJournal struct {
	Journal
	fails atomic.Bool
	hangs chan struct{}
}

func (j *sickJournal) SetFinal(uid types.UID, final podstatus.Final) error {
	if j.hangs != nil {
		<-j.hangs
	}
	if j.fails.Load() {
		return errDiskFull
	}
	return j.Journal.SetFinal(uid, final)
}

func TestEndThatCouldNotBeWrittenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		sick := &sickJournal{Journal: memory}
		w, pod := newWorld(t, withJournal(sick)).runWith("job", restartNever)
		w.api.SetFault(func(context.Context, statustest.Request) error { return statustest.ErrRefused })
		sick.fails.Store(true)
		if _, err := w.manager.SetPodStatus(pod, ended(pod, 1)); !errors.Is(err, errDiskFull) {
			t.Errorf("SetPodStatus: %v", err)
		}
		time.Sleep(time.Minute)
		sick.fails.Store(false)
		pass(time.Minute)
		if len(memory.Finals()) != 1 {
			t.Error("the end is not in the journal, although the disk has room again")
		}
	})
}

// A disk that hangs must not keep Run from returning.
func TestRunReturnsAlthoughTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick := &sickJournal{Journal: journal.NewMemory(), hangs: make(chan struct{})}
		w := newWorld(t, withJournal(sick))
		pod, other := w.create("job", restartNever), w.create("other")
		w.run()
		w.set(pod, ended(pod, 1))
		time.Sleep(time.Minute)
		w.set(other, running(other, true))
		time.Sleep(time.Second)
		w.wantAgreement(other)
		begin := time.Now()
		w.stop()
		if took := time.Since(begin); took > journalPatience {
			t.Errorf("Run took %v to return", took)
		}
		close(sick.hangs)
	})
}

// The API server may have an end before its report comes to the journal, whose disk hangs. The report has nothing to wait for.
func TestEndThatTheAPIHas_WaitsForNoDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick := &sickJournal{Journal: journal.NewMemory(), hangs: make(chan struct{})}
		w, pod := newWorld(t, withJournal(sick)).runWith("job", restartNever)
		w.report(pod, ended(pod, 1))
		w.wantAgreement(pod)
		if err := w.manager.keepFinal(pod.UID, w.manager.cache.load(pod.UID)); err != nil {
			t.Errorf("a report of an end that the API has: %v", err)
		}
		w.stop()
		close(sick.hangs)
	})
}

func TestAlwaysReadCostsNoReadForADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.AlwaysRead = true }).runWith("web", restartNever, deleting)
		w.report(pod, ended(pod, 0))
		w.api.ForgetRequests()
		must(w.manager.TerminatePod(pod))
		synctest.Wait()
		gets := w.api.Count("GET")
		if gets > 1 || w.api.Count("DELETE") != 1 {
			t.Errorf("requests %v", w.api.Log())
		}
	})
}

func TestClientWithoutANodeNameIsRefused(t *testing.T) {
	if _, err := New(Options{Client: NewClient(nil, ""), Pods: newWorld(t).table}); err == nil {
		t.Error("New took a client that would list the pods of no node")
	}
}

func TestStatusesListsCopies(t *testing.T) {
	pod := newPod("web")
	m := standalone(t, pod)
	if _, err := m.SetPodStatus(pod, running(pod, true)); err != nil {
		t.Fatal(err)
	}
	list := m.Statuses()
	if len(list) != 1 || list[0].UID != pod.UID || list[0].Name != "web" || list[0].Version != 1 || list[0].Status.Phase != v1.PodRunning {
		t.Fatalf("got %+v", list)
	}
	list[0].Status.ContainerStatuses[0].Ready = false
	if status, _ := m.GetPodStatus(pod.UID); !status.ContainerStatuses[0].Ready {
		t.Error("what was handed out is the cache's own")
	}
}
