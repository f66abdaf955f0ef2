package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// gate is a Safety and a Reclaim that a test opens.
type gate struct{ running, unreclaimed atomic.Bool }

// runningGate is that of a pod whose containers could run.
func runningGate() *gate {
	g := &gate{}
	g.running.Store(true)
	return g
}

func (g *gate) CouldHaveRunningContainers(*v1.Pod) bool        { return g.running.Load() }
func (g *gate) ResourcesReclaimed(*v1.Pod, *v1.PodStatus) bool { return !g.unreclaimed.Load() }

func TestFinishedPodIsDeletedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web", restartNever, deleting)
		w.set(pod, running(pod, false))
		w.wantLog("still running", "PATCH ns/web")
		w.set(pod, ended(pod, 0))
		w.wantLog("ended, not finished: not deleted", "PATCH ns/web")
		must(w.manager.TerminatePod(pod))
		w.wantLog("finished", "DELETE ns/web")
		if w.api.Pod(pod) != nil {
			t.Error("the pod is still in the API")
		}
		if _, ok := w.manager.GetPodStatus(pod.UID); ok {
			t.Error("the pod is still in the cache")
		}
	})
}

func TestFinishedPodIsDeletedWhenItsDeletionIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web", restartNever)
		w.set(pod, ended(pod, 0))
		must(w.manager.TerminatePod(pod))
		w.wantLog("finished, not to be deleted", "PATCH ns/web")
		doomed := w.api.Pod(pod)
		deleting(doomed)
		w.api.Put(doomed)
		w.wantLog("the deletion is observed", "DELETE ns/web")
	})
}

// Invariant 2: never terminal in the API while a container could run; never deleted then.
func TestTerminalPhaseIsWithheldWhileContainersCouldRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := newWorld(t, func(o *Options) { o.Safety = g }).runWith("web", restartNever, deleting)
		w.set(pod, ended(pod, 1))
		must(w.manager.TerminatePod(pod))
		pass(time.Minute)
		if got := w.api.Pod(pod); got == nil || podstatus.IsTerminal(got.Status.Phase) {
			t.Fatalf("the API says %+v while containers could run", got)
		}
		if got := w.api.Count("PATCH"); got != 1 {
			t.Errorf("%d patches in a minute of waiting, want the one with the rest of the status", got)
		}
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason == "" {
			t.Errorf("pending is %+v, want the pod and why it waits", pending)
		}
		g.running.Store(false)
		pass(10 * time.Second)
		if w.api.Pod(pod) != nil {
			t.Errorf("the pod is still in the API after its containers stopped: %v", w.api.Log())
		}
	})
}

// The phase waits for the containers; what others change meanwhile does not.
func TestDriftOfAPodWhosePhaseIsWithheldIsRepairedWhenItIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := newWorld(t, func(o *Options) { o.Safety = g }).runWith("web", restartNever)
		w.set(pod, ended(pod, 1))
		w.wantLog("the phase is withheld", "PATCH ns/web")
		w.api.Change(pod, func(pod *v1.Pod) { pod.Status.ContainerStatuses = nil })
		w.wantLog("repaired at once, not when the containers are looked at again", "PATCH ns/web")
		if got := w.api.Pod(pod).Status; len(got.ContainerStatuses) != 1 || podstatus.IsTerminal(got.Phase) {
			t.Errorf("the API has phase %s and %d container statuses, want the one, and the phase withheld", got.Phase, len(got.ContainerStatuses))
		}
		w.api.Change(pod, func(pod *v1.Pod) { pod.Labels = map[string]string{"app": "web"} })
		w.wantLog("a change of others that is none of the node's")
	})
}

// A node agent reports the end of the containers and, an instant later, of the pod.
func TestTerminationDuringTheRequestThatWithheldThePhaseIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := newWorld(t, func(o *Options) { o.Safety = g }).runWith("web", restartNever)
		w.api.SetLatency(time.Second)
		begin := time.Now()
		w.set(pod, ended(pod, 0))
		time.Sleep(time.Second / 2)
		g.running.Store(false)
		must(w.manager.TerminatePod(pod))
		time.Sleep(3 * time.Second)
		var got []string
		for _, s := range w.api.Requests() {
			got = append(got, fmt.Sprintf("%s at %s", s.Verb, s.At.Sub(begin)))
		}
		if want := []string{"PATCH at 0s", "PATCH at 1s"}; !slices.Equal(got, want) {
			t.Errorf("requests, each of which takes a second:\n got %v\nwant %v", got, want)
		}
	})
}

// A kubelet reports the ends of the containers of a pod in deletion a moment before Safety says that none runs.
func TestEndOfAPodInDeletionIsWrittenWithItsPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := newWorld(t, func(o *Options) { o.Safety = g }).runWith("web", restartNever)
		w.set(pod, running(pod, true))
		w.wantLog("ready", "PATCH ns/web")
		w.api.Change(pod, deleting)
		w.wantLog("in deletion")
		w.set(w.api.Pod(pod), ended(pod, 0))
		w.wantLog("ended, Safety does not say so yet")
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitEnding.String() {
			t.Errorf("pending is %+v, want the pod and why it waits", pending)
		}
		g.running.Store(false)
		must(w.manager.TerminatePod(pod))
		w.wantLog("Safety says so", "PATCH ns/web", "DELETE ns/web")
	})
}

// Safety says for long that a container could run: Ready is false in the API all the same, and later reports wait no more.
func TestEndOfAPodInDeletionWaitsForItsPhaseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := newWorld(t, func(o *Options) { o.Safety = g }).runWith("web", restartNever)
		w.set(pod, running(pod, true))
		w.wantLog("ready", "PATCH ns/web")
		w.api.Change(pod, deleting)
		w.set(w.api.Pod(pod), ended(pod, 0))
		w.wantLog("ended")
		pass(2 * time.Second)
		w.wantLog("2 s later", "PATCH ns/web")
		w.wantReady(pod, false)
		later := ended(pod, 0)
		later.HostIP = "192.0.2.7"
		w.set(w.api.Pod(pod), later)
		w.wantLog("another address", "PATCH ns/web")
	})
}

// Flush sends what the end of a pod in deletion waits with.
func TestFlushSendsTheEndOfAPodInDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.Safety = runningGate() }).runWith("web", restartNever)
		w.set(pod, running(pod, true))
		w.wantLog("ready", "PATCH ns/web")
		w.api.Change(pod, deleting)
		w.set(w.api.Pod(pod), ended(pod, 0))
		w.wantLog("ended")
		begin := time.Now()
		if err := w.manager.Flush(t.Context()); err != nil || time.Since(begin) > 0 {
			t.Errorf("Flush: %v after %v", err, time.Since(begin))
		}
		w.wantLog("flushed", "PATCH ns/web")
		w.wantReady(pod, false)
	})
}

func TestWithoutSafetyAReportedRunningContainerWithholdsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web", restartNever)
		evicted := running(pod, true)
		evicted.Phase, evicted.Reason = v1.PodFailed, "Evicted"
		w.report(pod, evicted)
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodPending {
			t.Errorf("the API says %s while a container runs, want the phase withheld", got)
		}
		stopped := ended(pod, 137)
		stopped.Reason = "Evicted"
		w.set(pod, stopped)
		pass(time.Second)
		if got := w.api.Pod(pod).Status; got.Phase != v1.PodFailed || got.Reason != "Evicted" || isReady(&got) {
			t.Errorf("the API says %s/%s, ready %v; want Failed/Evicted, not ready", got.Phase, got.Reason, isReady(&got))
		}
	})
}

func TestDeletionWaitsForReclaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		g.unreclaimed.Store(true)
		w, pod := newWorld(t, func(o *Options) { o.Reclaim = g }).runWith("web", restartNever, deleting)
		w.set(pod, ended(pod, 0))
		must(w.manager.TerminatePod(pod))
		pass(time.Minute)
		if got := w.api.Count("DELETE"); got != 0 {
			t.Errorf("%d deletes before the resources were reclaimed", got)
		}
		g.unreclaimed.Store(false)
		pass(10 * time.Second)
		if w.api.Pod(pod) != nil {
			t.Error("the pod is still in the API after its resources were reclaimed")
		}
	})
}

func TestDeletionIsRetriedOnItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.manager.cache.jitter = func() float64 { return 0 }
		pod := w.create("web", restartNever, deleting)
		w.run()
		failures := 3
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			if s.Verb == "DELETE" && failures > 0 {
				failures--
				return apierrors.NewInternalError(errors.New("boom"))
			}
			return nil
		})
		w.report(pod, ended(pod, 0)) // waits for the watch's copy, which is a reason to delete at once
		must(w.manager.TerminatePod(pod))
		time.Sleep(5 * time.Second)
		var deletes []time.Time
		for _, s := range w.api.Requests() {
			if s.Verb == "DELETE" {
				deletes = append(deletes, s.At)
			}
		}
		w.wantLog("three failures and a success", "PATCH ns/web", "DELETE ns/web", "DELETE ns/web", "DELETE ns/web", "DELETE ns/web")
		for i := 1; i < len(deletes); i++ {
			if got, want := deletes[i].Sub(deletes[i-1]), retryBackoff.Wait(i, 0); got != want {
				t.Errorf("try %d came %s after the one before it, want %s", i+1, got, want)
			}
		}
		w.wantNothingPending()
	})
}

// A delete that fails, or has to wait, is repeated further and further apart, although each
// try begins with a status that needs no write.
func TestDeletionThatKeepsFailingBacksOff(t *testing.T) {
	for name, answer := range map[string]error{
		"internal error":     apierrors.NewInternalError(errors.New("boom")),
		"denied":             statustest.DeniedByWebhook(403, "Forbidden"),
		"connection refused": statustest.ErrRefused,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.manager.cache.jitter = func() float64 { return 0 }
				pod := w.create("web", restartNever, deleting)
				w.run()
				w.api.SetFault(refusing("DELETE", answer))
				w.set(pod, ended(pod, 0))
				must(w.manager.TerminatePod(pod))
				pass(10 * time.Minute)
				// 250 ms, doubled up to 30 s, then every 30 s.
				if got := w.api.Count("DELETE"); got < 24 || got > 28 {
					t.Errorf("%d deletes in ten minutes, want about 26", got)
				}
				if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Attempts < 24 || pending[0].Err == nil {
					t.Errorf("pending is %+v, want the pod with all its attempts", pending)
				}
				// The report of a pod in deletion is stored also if it says nothing new. It must not
				// begin the schedule again.
				w.api.ForgetRequests()
				for range 60 {
					w.set(pod, ended(pod, 0))
					time.Sleep(time.Second)
				}
				synctest.Wait()
				if got := w.api.Count("DELETE"); got > 3 {
					t.Errorf("%d deletes in a minute of reports that say nothing new, want 2", got)
				}
			})
		})
	}
}

func TestLooksForReclaimedResourcesAreFurtherAndFurtherApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &countingGate{}
		g.unreclaimed.Store(true)
		w, pod := newWorld(t, func(o *Options) { o.Reclaim = g }).runWith("web", restartNever, deleting)
		w.set(pod, ended(pod, 0))
		must(w.manager.TerminatePod(pod))
		pass(10 * time.Minute)
		if got := g.asked.Load(); got < 55 || got > 90 {
			t.Errorf("asked %d times in ten minutes, want about once in ten seconds", got)
		}
	})
}

// countingGate counts how often it is asked for reclaimed resources.
type countingGate struct {
	gate
	asked atomic.Int64
}

func (g *countingGate) ResourcesReclaimed(pod *v1.Pod, status *v1.PodStatus) bool {
	g.asked.Add(1)
	return g.gate.ResourcesReclaimed(pod, status)
}

func TestDeletionOfAPodThatIsGoneOrAnotherIsDone(t *testing.T) {
	for name, happens := range map[string]func(*world, *v1.Pod){
		"gone": func(w *world, pod *v1.Pod) { w.api.Remove(pod.Namespace, pod.Name) },
		"someone else's": func(w *world, pod *v1.Pod) {
			w.api.Remove(pod.Namespace, pod.Name)
			w.api.Put(newPod(pod.Name, func(p *v1.Pod) { p.UID = "another" }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := newWorld(t).runWith("web", restartNever, deleting)
				w.set(pod, ended(pod, 0))
				w.wantLog("ended", "PATCH ns/web")
				w.api.OnStore(nil) // what happens is not seen
				happens(w, pod)
				must(w.manager.TerminatePod(pod))
				time.Sleep(time.Minute)
				w.wantLog("one delete is enough", "DELETE ns/web")
				if _, ok := w.manager.GetPodStatus(pod.UID); ok {
					t.Error("the pod is still in the cache")
				}
				if other := w.api.Pod(pod); other != nil && other.UID != "another" {
					t.Errorf("the API has %s", other.UID)
				}
			})
		})
	}
}

func TestMirrorPodIsNeverDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		static, mirror := w.createStatic("etcd")
		w.run()
		deleting(mirror)
		w.api.Put(mirror)
		w.set(static, ended(static, 0))
		must(w.manager.TerminatePod(static))
		pass(time.Minute)
		if got := w.api.Count("DELETE"); got != 0 {
			t.Errorf("%d deletes of a mirror pod, want none", got)
		}
	})
}

// Resources wait for the deletion of a finished pod: it goes before changes of others.
func TestObservedDeletionIsAWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.QPS, o.Burst = 10, 1 })
		finished := w.create("finished", restartNever)
		w.run()
		w.set(finished, ended(finished, 0))
		must(w.manager.TerminatePod(finished))
		time.Sleep(time.Second)
		for i := range 50 {
			other := w.create(fmt.Sprint("other-", i))
			w.set(other, running(other, false))
		}
		begin := time.Now()
		w.api.Change(finished, deleting)
		pass(time.Second)
		if w.api.Pod(finished) != nil {
			t.Errorf("the pod is still there %v after its deletion was observed", time.Since(begin))
		}
	})
}
