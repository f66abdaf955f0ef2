package status

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// annotate is a writer that changes an annotation of the pod without end.
func annotate(w *world, pod *v1.Pod, every time.Duration) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
				w.api.Change(pod, func(p *v1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "beat", fmt.Sprint(n)) })
			}
		}
	}()
	w.Cleanup(func() { cancel(); <-done })
}

// withClient makes a manager whose client has all methods, or only those that it must have.
func withClient(t *testing.T, all bool) *world {
	return newWorld(t, func(o *Options) {
		if server, ok := o.Client.(*statustest.Server); ok && all {
			o.Client = server.Client()
		}
	})
}

// A busy writer of anything else keeps neither an end nor a loss of readiness from the API.
func TestBusyAnnotatorDelaysNoEnd(t *testing.T) {
	for _, c := range []struct{ latency, every time.Duration }{
		{time.Second, 500 * time.Millisecond},
		{2 * time.Second, 500 * time.Millisecond},
		{50 * time.Millisecond, 40 * time.Millisecond},
	} {
		for _, all := range []bool{true, false} {
			for name, status := range map[string]func(*v1.Pod) v1.PodStatus{
				"the end":               func(pod *v1.Pod) v1.PodStatus { return ended(pod, 1) },
				"the loss of readiness": func(pod *v1.Pod) v1.PodStatus { s := running(pod, false); s.Message = "busy"; return s },
				"readiness alone":       func(pod *v1.Pod) v1.PodStatus { return running(pod, false) },
			} {
				t.Run(fmt.Sprint(name, " with latency ", c.latency, ", a write each ", c.every, ", all methods: ", all), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := withClient(t, all)
						pod := w.create("web", restartNever)
						w.set(pod, running(pod, true))
						w.run()
						time.Sleep(time.Minute)
						w.api.SetLatency(c.latency)
						annotate(w, pod, c.every)
						time.Sleep(5*time.Second + 17*time.Millisecond)
						w.api.ForgetRequests()
						want := status(pod)
						w.set(pod, want)
						pass(15 * time.Second)
						got := w.api.Pod(pod).Status
						if isReady(&got) {
							t.Errorf("15 s later the pod is still ready in the API: %+v\n%s", w.manager.Pending(), list(w.api.Log()))
						}
						if want.Phase == v1.PodFailed && got.Phase != v1.PodFailed {
							t.Errorf("15 s later the API says %s: %+v\n%s", got.Phase, w.manager.Pending(), list(w.api.Log()))
						}
						w.api.ForgetRequests()
						pass(time.Minute)
						if got := len(w.api.Log()); got > 60 {
							t.Errorf("%d requests in a minute", got)
						}
					})
				})
			}
		}
	}
}

// Invariant 2, terminal is final: an end that another writer stores between the two parts of a
// write stays.
func TestEndOfAnotherWriterStaysWhereOthersAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withClient(t, true)
		pod := w.create("web", restartNever)
		w.set(pod, running(pod, true))
		w.run()
		time.Sleep(time.Minute)
		phases := 0
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			switch {
			case s.Verb != "PATCH":
			case strings.HasPrefix(s.Body, "["): // the phase alone
				if phases++; phases == 1 {
					w.api.Change(pod, func(p *v1.Pod) { p.Status.Phase, p.Status.Reason = v1.PodFailed, "NodeLost" })
				}
			case strings.Contains(s.Body, "resourceVersion"):
				w.api.Change(pod, func(p *v1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "beat", time.Now().String()+s.Body) })
			}
			return nil
		})
		w.set(pod, ended(pod, 0))
		pass(time.Minute)
		if got := w.api.Pod(pod).Status; phases == 0 || got.Phase != v1.PodFailed || got.Reason != "NodeLost" {
			t.Errorf("the API has %s (%s) after %d writes of the phase alone, want Failed (NodeLost)", got.Phase, got.Reason, phases)
		}
		w.wantNothingPending()
	})
}

// A phase that is not terminal is never written without knowing the one that it replaces.
func TestPhaseThatIsNotTerminalIsNeverUnguarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withClient(t, false)
		pod := w.create("web", restartNever)
		w.run()
		w.api.SetLatency(50 * time.Millisecond)
		annotate(w, pod, 40*time.Millisecond)
		time.Sleep(time.Second)
		w.api.ForgetRequests()
		w.set(pod, running(pod, true))
		pass(10 * time.Second)
		for _, s := range w.api.Requests() {
			if s.Verb == "PATCH" && strings.Contains(s.Body, `"phase"`) && !strings.Contains(s.Body, "resourceVersion") {
				t.Errorf("unguarded: %s", s.Body)
			}
		}
		w.wantReady(pod, true)
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Err == nil {
			t.Errorf("pending is %+v, want the phase", pending)
		}
	})
}

// Invariant 2, a terminal pod is never Ready: where a webhook keeps the rest of a write ready, readiness goes with the phase.
func TestPhaseAlone_TakesReadinessAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withClient(t, true)
		pod := w.create("web", restartNever)
		w.set(pod, running(pod, true))
		w.run()
		time.Sleep(time.Minute)
		w.api.OnStore(func(pod *v1.Pod) {
			if podstatus.IsTerminal(pod.Status.Phase) && isReady(&pod.Status) {
				t.Errorf("the API has a pod that is %s and Ready", pod.Status.Phase)
			}
			w.deliver(pod)
		})
		w.api.SetWebhook(func(p *v1.Pod) {
			if ready := podstatus.FindCondition(p.Status.Conditions, v1.PodReady); !podstatus.IsTerminal(p.Status.Phase) {
				ready.Status = v1.ConditionTrue
			}
		})
		alone := 0
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			if strings.HasPrefix(s.Body, "[") {
				alone++
			} else if strings.Contains(s.Body, "resourceVersion") {
				w.api.Change(pod, func(p *v1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "beat", time.Now().String()+s.Body) })
			}
			return nil
		})
		w.set(pod, ended(pod, 0))
		pass(10 * time.Second)
		if got := w.api.Pod(pod).Status; alone != 1 || got.Phase != v1.PodSucceeded || isReady(&got) {
			t.Errorf("the API has %s, ready %v, after %d writes of the phase alone; want Succeeded, not ready, after 1", got.Phase, isReady(&got), alone)
		}
		w.wantNothingPending()
	})
}

// A server that answers every other write with a conflict, and a webhook that changes what is stored: neither of the two makes
// the manager write without a pause.
func TestConflictsAndAWebhook_CostFewRequests(t *testing.T) {
	for name, hook := range map[string]func(*v1.Pod){
		"reason":  func(p *v1.Pod) { p.Status.Reason = "webhook" },
		"address": func(p *v1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil },
		"message": func(p *v1.Pod) { p.Status.Conditions[0].Message = "webhook" },
	} {
		for kind, edit := range map[string]func(*v1.Pod){"pod": func(*v1.Pod) {}, "static pod": staticPod} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					pod := newPod("web", edit)
					w.table.Set(pod)
					if podstatus.IsStatic(pod) {
						w.api.Put(mirrorOf(pod, "mirror"))
					} else {
						w.api.Put(pod)
					}
					w.run()
					w.set(pod, running(pod, false))
					synctest.Wait()
					w.api.SetLatency(10 * time.Millisecond)
					w.api.SetWebhook(hook)
					writes := 0
					w.api.SetFault(func(_ context.Context, r statustest.Request) error {
						if r.Verb != "PATCH" {
							return nil
						}
						if writes++; writes%2 == 0 {
							return nil
						}
						return statustest.Conflict(r)
					})
					w.api.ForgetRequests()
					w.set(pod, running(pod, true))
					time.Sleep(time.Minute)
					if got := len(w.api.Log()); got > requestsAMinute {
						t.Errorf("%d requests in a minute, want at most %d", got, requestsAMinute)
					}
				})
			})
		}
	}
}
