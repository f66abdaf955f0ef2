package status

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// creating is the status of a pod whose container is being created, with a sandbox or without one.
func creating(pod *v1.Pod, sandbox v1.ConditionStatus) v1.PodStatus {
	status := withConditions(pod, v1.PodStatus{
		Phase:             v1.PodPending,
		ContainerStatuses: []v1.ContainerStatus{{Name: "main", Image: "host", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}}},
	})
	return withSandbox(status, sandbox)
}

func withSandbox(status v1.PodStatus, sandbox v1.ConditionStatus) v1.PodStatus {
	status.Conditions = append(status.Conditions, v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: sandbox})
	return status
}

// wantSandbox checks what the API says of the sandbox.
func (w *world) wantSandbox(pod *v1.Pod, want v1.ConditionStatus) {
	w.Helper()
	c := podstatus.FindCondition(w.api.Pod(pod).Status.Conditions, v1.PodReadyToStartContainers)
	if c == nil || c.Status != want {
		w.Errorf("the API has condition %+v, want status %s", c, want)
	}
}

// inABurst takes the tokens of details, so that each report of details waits.
func (w *world) inABurst() {
	w.manager.cache.mu.Lock()
	defer w.manager.cache.mu.Unlock()
	w.manager.cache.details = &budget{qps: 1e-9}
}

// starting is a world in a burst, with a pod that is being created, as the API knows.
func starting(t *testing.T, change ...func(*Options)) (*world, *v1.Pod) {
	w, pod := newWorld(t, append(change, func(o *Options) { o.Jitter = func() float64 { return 0 } })...).runWith("web", restartNever)
	w.inABurst()
	w.set(pod, creating(pod, v1.ConditionFalse))
	w.wantLog("the first report", "PATCH ns/web")
	return w, pod
}

// inDeletion is a world in a burst, with a running pod in deletion whose worker has just reported that it knows.
func inDeletion(t *testing.T, change ...func(*Options)) (*world, *v1.Pod) {
	w, pod := newWorld(t, append(change, func(o *Options) { o.Jitter = func() float64 { return 0 } })...).runWith("web", restartNever)
	w.inABurst()
	w.set(pod, running(pod, true))
	w.wantLog("ready", "PATCH ns/web")
	pod = w.deleteByUser(pod)
	w.set(pod, running(pod, true))
	return w, pod
}

func (w *world) deleteByUser(pod *v1.Pod) *v1.Pod {
	w.api.Change(pod, userDeletes)
	return w.api.Pod(pod)
}

// The API has each state of a pod that starts and stops on a quiet node.
func TestFewDetailsAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web", restartNever)
		w.set(pod, creating(pod, v1.ConditionFalse))
		w.wantLog("the first report", "PATCH ns/web")
		w.set(pod, creating(pod, v1.ConditionTrue))
		w.wantLog("a sandbox", "PATCH ns/web")
		w.wantSandbox(pod, v1.ConditionTrue)
		w.set(pod, withSandbox(running(pod, true), v1.ConditionTrue))
		w.wantLog("running", "PATCH ns/web")
		pod = w.deleteByUser(pod)
		w.set(pod, withSandbox(running(pod, true), v1.ConditionTrue))
		w.wantLog("the node knows of the deletion", "PATCH ns/web")
		if got := w.api.Pod(pod).Status.ObservedGeneration; got != 2 {
			t.Errorf("the API has observed generation %d, want 2", got)
		}
		w.wantNothingPending()
	})
}

func TestManyDetailsShareTheTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Jitter = func() float64 { return 0 } })
		pods := make([]*v1.Pod, 4*detailTokens)
		for i := range pods {
			pods[i] = w.create(fmt.Sprint("web-", i), restartNever)
		}
		w.run()
		written := func(status v1.ConditionStatus) int {
			for _, pod := range pods {
				w.report(pod, creating(pod, status))
			}
			pass(time.Millisecond)
			defer w.api.ForgetRequests()
			return len(w.api.Requests())
		}
		if got := written(v1.ConditionFalse); got != len(pods) {
			t.Fatalf("%d first reports written, want all %d", got, len(pods))
		}
		if got := written(v1.ConditionTrue); got != detailTokens {
			t.Errorf("%d sandboxes written at once, want %d", got, detailTokens)
		}
		pass(detailBackoff.Limit)
		if got := len(w.api.Requests()); got != len(pods)-detailTokens {
			t.Errorf("%d sandboxes written after their wait, want the other %d", got, len(pods)-detailTokens)
		}
		w.wantNothingPending()
		w.api.ForgetRequests()
		pass(3*detailsEvery - detailBackoff.Limit)
		if got := written(v1.ConditionFalse); got != 3 {
			t.Errorf("%d sandboxes written at once, want 3 for the tokens of %v", got, 3*detailsEvery)
		}
	})
}

// A kubelet reports the sandbox of a pod a moment before its containers.
func TestSandboxIsWrittenWithTheContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := starting(t)
		w.set(pod, creating(pod, v1.ConditionTrue))
		sandboxed := time.Now()
		w.wantLog("a sandbox")
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitDetails.String() || !pending[0].NextTry.Equal(sandboxed.Add(detailBackoff.Limit)) {
			t.Errorf("pending is %+v, want the pod, why it waits and until when", pending)
		}
		pass(detailBackoff.Limit / 2)
		w.wantLog("half of the wait")
		w.set(pod, withSandbox(running(pod, true), v1.ConditionTrue))
		w.wantLog("running", "PATCH ns/web")
		w.wantReady(pod, true)
		w.wantSandbox(pod, v1.ConditionTrue)
		c := podstatus.FindCondition(w.api.Pod(pod).Status.Conditions, v1.PodReadyToStartContainers)
		if got := c.LastTransitionTime.Time; !got.Equal(sandboxed.Truncate(time.Second)) {
			t.Errorf("the API has a sandbox since %v, want %v, when it was reported", got, sandboxed)
		}
		pass(time.Minute)
		w.wantLog("nothing is left")
		w.wantNothingPending()
	})
}

// The image may take long to pull.
func TestSandboxIsWrittenAloneAfterItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := starting(t)
		w.set(pod, creating(pod, v1.ConditionTrue))
		time.Sleep(detailBackoff.Limit - time.Millisecond)
		w.wantLog("before the end of the wait")
		time.Sleep(time.Millisecond)
		w.wantLog("the wait is over", "PATCH ns/web")
		w.wantSandbox(pod, v1.ConditionTrue)
		w.wantNothingPending()
	})
}

// Reports of details do not prolong the wait.
func TestDetailsWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := starting(t)
		began := time.Now()
		for i := range 12 { // one each 3/10 of the wait
			status := creating(pod, v1.ConditionTrue)
			status.Conditions[len(status.Conditions)-1].Message = fmt.Sprint("report ", i)
			w.set(pod, status)
			pass(detailBackoff.Limit * 3 / 10)
		}
		var got []time.Duration
		for _, r := range w.api.Requests() {
			got = append(got, r.At.Sub(began))
		}
		if want := []time.Duration{detailBackoff.Limit, detailBackoff.Limit * 22 / 10, detailBackoff.Limit * 34 / 10}; !slices.Equal(got, want) {
			t.Errorf("written after %v, want %v: a wait after the first report that is not written", got, want)
		}
	})
}

// A kubelet reports that it knows of a deletion some time before it reports the end.
func TestGenerationOfAPodInDeletionIsWrittenWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := inDeletion(t, func(o *Options) { o.Safety = g })
		w.wantLog("the node knows of the deletion")
		pass(lastDetailBackoff.Limit - time.Second)
		w.set(pod, ended(pod, 0))
		w.wantLog("ended, Safety does not say so yet")
		g.running.Store(false)
		must(w.manager.TerminatePod(pod))
		w.wantLog("Safety says so", "PATCH ns/web", "DELETE ns/web")
	})
}

// Containers may take long to stop.
func TestGenerationOfAPodInDeletionIsWrittenAfterItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := inDeletion(t)
		pass(lastDetailBackoff.Limit - time.Millisecond)
		w.wantLog("before the end of the wait")
		pass(time.Millisecond)
		w.wantLog("the wait is over", "PATCH ns/web")
		if got := w.api.Pod(pod).Status.ObservedGeneration; got != 2 {
			t.Errorf("the API has observed generation %d, want 2", got)
		}
	})
}

// The details of the end wait for nothing but their own wait: the phase that Safety withholds is looked at each second.
func TestEndThatIsWithheldDoesNotWaitWithTheDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := inDeletion(t, func(o *Options) { o.Safety = g })
		w.wantLog("the node knows of the deletion")
		evicted := running(pod, true)
		evicted.Phase, evicted.Reason = v1.PodFailed, "Evicted"
		w.set(pod, evicted)
		w.wantLog("only the phase has changed otherwise, and it is withheld", "PATCH ns/web")
		g.running.Store(false)
		pass(time.Second)
		w.wantLog("Safety says so", "PATCH ns/web")
	})
}

// After the end a kubelet removes the cgroup of the pod, and reports that the pod has no resources any more.
func TestDetailsOfAFinishedPodGoWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web", restartNever)
		w.inABurst()
		w.set(pod, running(pod, true))
		w.wantLog("ready", "PATCH ns/web")
		pod = w.deleteByUser(pod)
		end := ended(pod, 0)
		end.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}}
		w.set(pod, end)
		w.wantLog("ended", "PATCH ns/web")
		end.Resources = nil
		w.set(pod, end)
		w.wantLog("no cgroup")
		must(w.manager.TerminatePod(pod))
		w.wantLog("finished", "DELETE ns/web")
		pass(time.Minute)
		w.wantLog("nothing is left")
	})
}

// A pod that is finished and stays in the API has its details written.
func TestDetailsOfAFinishedPodThatStaysAreWritten(t *testing.T) {
	for name, stays := range map[string]func(*world, *v1.Pod, *gate){
		"a finalizer": func(w *world, pod *v1.Pod, _ *gate) {
			w.api.Change(pod, func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/keep"} })
		},
		"a webhook denies the deletion": func(w *world, _ *v1.Pod, _ *gate) {
			w.api.SetFault(refusing("DELETE", statustest.DeniedByWebhook(403, "Forbidden")))
		},
		"not reclaimed": func(_ *world, _ *v1.Pod, g *gate) { g.unreclaimed.Store(true) },
		"not deleted":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{}
				w, pod := newWorld(t, func(o *Options) { o.Reclaim = g }).runWith("web", restartNever)
				w.set(pod, running(pod, true))
				w.wantLog("ready", "PATCH ns/web")
				if stays != nil {
					pod = w.deleteByUser(pod)
					stays(w, pod, g)
				}
				w.set(pod, withSandbox(ended(pod, 0), v1.ConditionTrue))
				w.wantLog("ended", "PATCH ns/web")
				w.set(pod, withSandbox(ended(pod, 0), v1.ConditionFalse))
				must(w.manager.TerminatePod(pod))
				pass(5 * time.Second)
				w.wantSandbox(pod, v1.ConditionFalse)
				if name == "a finalizer" { // the API server keeps the pod: its status is whole before it is deleted
					w.wantLog(name, "PATCH ns/web", "DELETE ns/web")
				}
			})
		})
	}
}

// A user may wait for the node to know of a new spec.
func TestGenerationOfAnEditedPodIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web", restartNever)
		w.set(pod, running(pod, true))
		w.wantLog("ready", "PATCH ns/web")
		w.api.Change(pod, func(pod *v1.Pod) { pod.Generation++ })
		w.set(w.api.Pod(pod), running(pod, true))
		w.wantLog("the node knows of the edit", "PATCH ns/web")
	})
}

// Whatever a client may wait for is sent at once, and the details with it.
func TestNothingElseWaitsWithTheDetails(t *testing.T) {
	for name, change := range map[string]func(*world, *v1.Pod) v1.PodStatus{
		"running": func(_ *world, pod *v1.Pod) v1.PodStatus { return running(pod, false) },
		"ready":   func(_ *world, pod *v1.Pod) v1.PodStatus { return running(pod, true) },
		"ended":   func(_ *world, pod *v1.Pod) v1.PodStatus { return ended(pod, 1) },
		"an address": func(_ *world, pod *v1.Pod) v1.PodStatus {
			return edited(creating(pod, "True"), func(s *v1.PodStatus) { s.PodIP = "10.0.0.1" })
		},
		"a reason": func(_ *world, pod *v1.Pod) v1.PodStatus {
			return edited(creating(pod, "True"), func(s *v1.PodStatus) { s.ContainerStatuses[0].State.Waiting.Reason = "ImagePullBackOff" })
		},
		"a restart": func(_ *world, pod *v1.Pod) v1.PodStatus {
			return edited(creating(pod, "True"), func(s *v1.PodStatus) { s.ContainerStatuses[0].RestartCount = 1 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, pod := starting(t)
				w.set(pod, creating(pod, v1.ConditionTrue))
				w.wantLog("a sandbox")
				w.set(pod, change(w, pod))
				w.wantLog(name, "PATCH ns/web")
				w.wantNothingPending()
			})
		})
	}
}

func edited(status v1.PodStatus, edit func(*v1.PodStatus)) v1.PodStatus {
	edit(&status)
	return status
}

func TestWithdrawalDoesNotWaitWithTheDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := inDeletion(t)
		w.wantLog("the node knows of the deletion")
		must(w.manager.SetContainerReadiness(pod.UID, pod.Status.ContainerStatuses[0].ContainerID, false))
		w.wantLog("no longer ready", "PATCH ns/web")
		w.wantReady(pod, false)
	})
}

// What another writer takes away is restored while details wait.
func TestReadinessIsRestoredWhileDetailsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := inDeletion(t)
		w.wantLog("the node knows of the deletion")
		w.api.Change(pod, func(pod *v1.Pod) {
			podstatus.FindCondition(pod.Status.Conditions, v1.PodReady).Status = v1.ConditionFalse
		})
		w.wantLog("another writer", "PATCH ns/web")
		w.wantReady(pod, true)
	})
}

// The change of another writer waits for nothing, even of a detail.
func TestDetailsThatAnotherWriterChangesAreRestoredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := starting(t)
		w.api.Change(pod, func(pod *v1.Pod) {
			podstatus.FindCondition(pod.Status.Conditions, v1.PodReadyToStartContainers).Status = v1.ConditionTrue
		})
		w.wantLog("another writer", "PATCH ns/web")
		w.wantSandbox(pod, v1.ConditionFalse)
	})
}

func TestFlushAndShutdownSendDetailsAtOnce(t *testing.T) {
	for name, send := range map[string]func(*Manager, context.Context) error{"Flush": (*Manager).Flush, "Shutdown": (*Manager).Shutdown} {
		for _, waits := range []bool{true, false} { // or the pod had no turn yet
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, pod := starting(t)
					w.set(pod, creating(pod, v1.ConditionTrue))
					if waits {
						w.wantLog("a sandbox")
					}
					begin := time.Now()
					if err := send(w.manager, t.Context()); err != nil || time.Since(begin) > 0 {
						t.Errorf("%s: %v after %v", name, err, time.Since(begin))
					}
					w.wantLog(name, "PATCH ns/web")
					w.wantSandbox(pod, v1.ConditionTrue)
				})
			})
		}
	}
}

// A Run that has ended leaves the details to Shutdown.
func TestShutdownAfterRunSendsDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := starting(t)
		w.set(pod, creating(pod, v1.ConditionTrue))
		w.wantLog("a sandbox")
		w.stop()
		begin := time.Now()
		if err := w.manager.Shutdown(t.Context()); err != nil || time.Since(begin) > 0 {
			t.Errorf("Shutdown: %v after %v", err, time.Since(begin))
		}
		w.wantSandbox(pod, v1.ConditionTrue)
	})
}

// After a failure a status is not put off once more.
func TestDetailsThatFailedAreTriedAgainOnTheirSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := starting(t)
		w.manager.cache.jitter = func() float64 { return 0 }
		w.api.SetFault(refusing("PATCH", apierrors.NewServiceUnavailable("not now")))
		w.set(pod, creating(pod, v1.ConditionTrue))
		pass(detailBackoff.Limit)
		w.wantLog("the wait is over", "PATCH ns/web")
		w.api.SetFault(nil)
		pass(retryBackoff.Wait(1, 0))
		w.wantLog("tried again", "PATCH ns/web")
		w.wantSandbox(pod, v1.ConditionTrue)
	})
}

// A manager that always reads would read twice.
func TestManagerThatAlwaysReadsPutsNothingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.AlwaysRead = true }).runWith("web", restartNever)
		w.set(pod, creating(pod, v1.ConditionFalse))
		w.wantLog("the first report", "GET ns/web", "PATCH ns/web")
		w.set(pod, creating(pod, v1.ConditionTrue))
		w.wantLog("a sandbox", "GET ns/web", "PATCH ns/web")
	})
}

// A report during the write of details is not put off longer than its own wait.
func TestDetailsDuringAWriteWaitOnTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.Jitter = func() float64 { return 0 } }).runWith("web", restartNever)
		w.inABurst()
		w.api.SetLatency(200 * time.Millisecond)
		w.set(pod, creating(pod, v1.ConditionFalse))
		time.Sleep(100 * time.Millisecond)
		w.set(pod, creating(pod, v1.ConditionTrue))
		reported := time.Now()
		time.Sleep(detailBackoff.Limit - time.Millisecond)
		w.wantLog("before the end of the wait", "PATCH ns/web")
		time.Sleep(time.Millisecond)
		w.wantLog("the wait is over", "PATCH ns/web")
		pass(200 * time.Millisecond)
		w.wantSandbox(pod, v1.ConditionTrue)
		if got := time.Since(reported); got > detailBackoff.Limit+200*time.Millisecond {
			t.Errorf("written after %v", got)
		}
	})
}

// Limits: turns without a request cost no tokens.
func TestDetailsThatWaitCostNoTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.QPS, o.Burst = 1, 2 })
		pod := w.create("web", restartNever)
		other := w.create("other", restartNever)
		w.run()
		w.inABurst()
		w.set(pod, creating(pod, v1.ConditionFalse))
		pass(10 * time.Second)
		w.api.ForgetRequests()
		for i := range 20 {
			w.report(pod, creating(pod, []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse}[i%2]))
		}
		w.set(other, running(other, true))
		w.wantLog("another pod", "PATCH ns/other")
	})
}
