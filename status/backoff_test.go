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
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/statustest"
)

func TestBackoffIsThePodsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod, other := w.create("failing"), w.create("other")
		w.run()
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			if s.Name == "ns/failing" {
				return apierrors.NewInternalError(errors.New("boom"))
			}
			return nil
		})
		w.set(pod, running(pod, true))
		for i := range 100 { // other pods' signals must not cause tries
			status := running(other, true)
			status.Message = fmt.Sprint(i)
			w.set(other, status)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		tries := 0
		for _, s := range w.api.Requests() {
			if s.Name == "ns/failing" {
				tries++
			}
		}
		if tries < 4 || tries > 8 { // 0, .25, .75, 1.75, 3.75, 7.75 s, with jitter
			t.Errorf("%d tries in 10 s, want about 6", tries)
		}
		pending := w.manager.Pending()
		if len(pending) != 1 || pending[0].Attempts < tries-1 || pending[0].Err == nil || !pending[0].NextTry.After(time.Now()) {
			t.Errorf("pending is %+v, want the failing pod with %d attempts, one of two requests, its error and its next try", pending, tries-1)
		}
		w.api.SetFault(nil)
		time.Sleep(30 * time.Second)
		w.wantNothingPending()
	})
}

func TestRetryAfterSlowsTheWholeEngineBackgroundFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Workers = 1 })
		a, b, c := w.create("a"), w.create("b"), w.create("c")
		w.set(c, running(c, true))
		w.run()
		w.api.ForgetRequests()
		begin := time.Now()
		throttle := true
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			if throttle {
				throttle = false
				return apierrors.NewTooManyRequests("busy", 5)
			}
			return nil
		})
		w.set(a, running(a, true))
		synctest.Wait()
		w.set(b, running(b, true))
		drift(w, c)
		pass(time.Minute)
		at := map[string]time.Duration{}
		for _, s := range w.api.Requests() {
			at[s.Name] = s.At.Sub(begin).Round(time.Second)
		}
		want := map[string]time.Duration{"ns/a": 5 * time.Second, "ns/b": 5 * time.Second, "ns/c": 10 * time.Second}
		for name, d := range want {
			if at[name] != d {
				t.Errorf("%s was sent at %v, want %v", name, at[name], d)
			}
		}
	})
}

func TestConflictWithoutANewPodIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		conflicts := 3
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			if s.Verb == "PATCH" && conflicts > 0 {
				conflicts--
				return apierrors.NewConflict(podResource, "web", errors.New("the object has been modified"))
			}
			return nil
		})
		w.set(pod, running(pod, true))
		w.wantLog("conflict: look, write again, write in parts, then back off", "PATCH ns/web", "GET ns/web", "PATCH ns/web", "PATCH ns/web")
		time.Sleep(time.Second)
		w.wantLog("and again later", "PATCH ns/web")
		w.wantNothingPending()
	})
}

// Invariant 5, nothing lost.
func TestOutageConvergesWithoutANewEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*v1.Pod
		for i := range 50 {
			all = append(all, w.create(fmt.Sprint("pod-", i)))
		}
		w.run()
		w.api.SetFault(func(context.Context, statustest.Request) error { return errors.New("connection refused") })
		for _, pod := range all {
			w.set(pod, running(pod, true))
		}
		time.Sleep(10 * time.Minute)
		w.api.SetFault(nil)
		pass(healedWithin)
		for _, pod := range all {
			if status := w.api.Pod(pod).Status; !isReady(&status) {
				t.Errorf("%s is not Ready in the API after the outage", pod.Name)
			}
		}
		w.wantNothingPending()
	})
}

func TestRequestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.RequestTimeout = 5 * time.Second }).runWith("web")
		w.api.SetFault(func(context.Context, statustest.Request) error { return statustest.ErrHang })
		w.set(pod, running(pod, true))
		time.Sleep(5100 * time.Millisecond)
		pending := w.manager.Pending()
		if len(pending) != 1 || !errors.Is(pending[0].Err, context.DeadlineExceeded) {
			t.Errorf("pending is %+v, want a timeout", pending)
		}
		w.api.SetFault(nil)
		time.Sleep(time.Second)
		w.wantNothingPending()
	})
}

// A request that is refused is the pod's own fault, and another status may be taken: the server
// may allow it, or a webhook that looks into it.
func TestAReportAfterARefusalIsTriedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.api.SetFault(refusing("PATCH", apierrors.NewForbidden(podResource, "web", errors.New("denied by a webhook"))))
		w.set(pod, running(pod, true))
		pass(10 * time.Minute)
		w.api.SetFault(nil)
		w.set(pod, running(pod, false))
		pass(time.Second)
		w.wantNothingPending()
		w.wantReady(pod, false)
	})
}

func TestAReportDuringARequestThatIsRefusedIsTriedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		var allowed atomic.Bool
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			if s.Verb == "PATCH" && !allowed.Load() {
				return apierrors.NewForbidden(podResource, "web", errors.New("denied by a webhook"))
			}
			return nil
		})
		w.set(pod, running(pod, true))
		for range 9 { // tries, 30 s apart by then
			synctest.Wait()
			time.Sleep(time.Until(w.manager.Pending()[0].NextTry))
		}
		w.api.SetLatency(2 * time.Second)
		pass(time.Second)
		time.Sleep(time.Until(w.manager.Pending()[0].NextTry) + time.Second) // in the middle of a try
		w.set(pod, running(pod, false))
		time.Sleep(2 * time.Second)
		allowed.Store(true)
		pass(4 * time.Second)
		w.wantNothingPending()
		w.wantReady(pod, false)
	})
}

// Permission that is missing for good costs no more requests for a pod that flaps than one per second.
func TestReportsAfterARefusalCostOneRequestPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.api.SetFault(refusing("PATCH", apierrors.NewForbidden(podResource, "web", errors.New("RBAC: clusterrole not found"))))
		w.set(pod, running(pod, true))
		time.Sleep(5 * time.Minute)
		w.api.ForgetRequests()
		for i := range 600 {
			w.set(pod, running(pod, i%2 == 0))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if got := w.api.Count("PATCH"); got < 55 || got > 61 {
			t.Errorf("%d requests in a minute of ten changes per second, want about 60", got)
		}
	})
}
