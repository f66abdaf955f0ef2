package status

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/statustest"
)

func TestOneRequestAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.set(pod, running(pod, false))
		w.wantLog("the pod starts", "PATCH ns/web")
		w.set(pod, running(pod, true))
		w.wantLog("the pod becomes ready", "PATCH ns/web")
		w.set(pod, running(pod, true))
		w.wantLog("nothing changes")
		if got := w.api.Pod(pod).Status; !isReady(&got) || got.Phase != v1.PodRunning {
			t.Errorf("the API says %+v", got)
		}
		w.wantNothingPending()
		if got := w.counter("statusd_pod_status_changes_total"); got != 2 {
			t.Errorf("%v changes counted, want 2", got)
		}
	})
}

func TestAlwaysReadReadsBeforeEachWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t, func(o *Options) { o.AlwaysRead = true }).runWith("web")
		w.set(pod, running(pod, false))
		w.wantLog("the pod starts", "GET ns/web", "PATCH ns/web")
	})
}

// Invariant 7, no impersonation.
func TestNothingIsSentBeforeTheFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web")
		down := errors.New("connection refused")
		w.api.SetFault(func(_ context.Context, s statustest.Request) error { return down })
		w.set(pod, running(pod, true))
		w.run()
		time.Sleep(time.Minute)
		for _, s := range w.api.Requests() {
			if s.Verb != "LIST" {
				t.Errorf("%s was sent before the API's pods were looked at", s)
			}
		}
		w.api.SetFault(nil)
		pass(time.Minute)
		if got := w.api.Count("PATCH"); got != 1 {
			t.Errorf("%d patches after the API came back, want 1", got)
		}
	})
}

// S6: the newest status is taken when the request is built.
func TestChangeWhileInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.api.SetLatency(100 * time.Millisecond)
		pod := w.create("web")
		w.run()
		time.Sleep(time.Second)
		w.api.ForgetRequests()
		w.set(pod, running(pod, false))
		time.Sleep(50 * time.Millisecond)
		for i := range 5 { // five changes while the first is in flight
			status := running(pod, false)
			status.Message = fmt.Sprint("step ", i)
			w.set(pod, status)
		}
		time.Sleep(time.Second)
		w.wantLog("five changes during a request", "PATCH ns/web", "PATCH ns/web")
		if got := w.api.Pod(pod).Status.Message; got != "step 4" {
			t.Errorf("the API says %q, want the newest change", got)
		}
		if got := w.counter("statusd_pod_status_coalesced_changes_total"); got != 4 {
			t.Errorf("%v changes coalesced, want 4", got)
		}
		if len(w.api.Overlaps()) > 0 {
			t.Errorf("two requests of one pod at once: %v", w.api.Overlaps())
		}
	})
}

func TestWithdrawalOvertakesABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Workers = 2 })
		w.api.SetLatency(10 * time.Millisecond)
		serving := w.create("serving")
		w.set(serving, running(serving, true))
		w.run()
		time.Sleep(time.Second)
		w.api.ForgetRequests()
		for i := range 100 {
			pod := w.create(fmt.Sprint("starting-", i))
			w.set(pod, running(pod, false))
		}
		pass(50 * time.Millisecond)
		before := len(w.api.Log())
		must(w.manager.SetContainerReadiness(serving.UID, "process://serving-uid", false))
		pass(20 * time.Millisecond)
		log := w.api.Log()
		for i, line := range log[before:] {
			if line == "PATCH ns/serving" {
				if i > 2 {
					t.Errorf("%d requests went before the withdrawal, want at most the 2 in flight", i)
				}
				return
			}
		}
		t.Errorf("the withdrawal was not among the next requests: %v", log[before:])
	})
}

func TestBudgetIsTakenBeforeTheChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.QPS, o.Burst = 10, 1 })
		serving := w.create("serving")
		w.set(serving, running(serving, true))
		w.run()
		time.Sleep(time.Second)
		w.api.ForgetRequests()
		for i := range 20 {
			pod := w.create(fmt.Sprint("starting-", i))
			w.set(pod, running(pod, false))
		}
		synctest.Wait()
		must(w.manager.SetContainerReadiness(serving.UID, "process://serving-uid", false))
		pass(101 * time.Millisecond)
		if log := w.api.Log(); len(log) != 2 || log[1] != "PATCH ns/serving" {
			t.Errorf("requests are %v, want one starting pod and then the withdrawal with the next token", log)
		}
		pass(2 * time.Second)
		if got := w.api.Count("PATCH"); got != 21 {
			t.Errorf("%d patches in 2 s at 10 a second, want all 21", got)
		}
		if got := w.counter("statusd_pod_status_throttled_seconds_total"); got < 1.9 || got > 2.1 {
			t.Errorf("throttled for %v s, want about 2", got)
		}
	})
}

// Invariant 6, no blocking: errors of one pod, and hanging requests of many.
func TestFailingAndHangingPodsDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Workers = 4 })
		var hanging []*v1.Pod
		for i := range 40 {
			hanging = append(hanging, w.create(fmt.Sprint("hanging-", i)))
		}
		failing, healthy := w.create("failing"), w.create("healthy")
		w.run()
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			switch s.Name {
			case "ns/failing":
				return apierrors.NewInternalError(errors.New("boom"))
			case "ns/healthy", "":
				return nil
			default:
				return statustest.ErrHang
			}
		})
		for _, pod := range hanging {
			w.set(pod, running(pod, true))
		}
		w.set(failing, running(failing, true))
		synctest.Wait()
		w.set(healthy, running(healthy, false))
		time.Sleep(21 * time.Second) // 10 rounds of 4 slow requests at 2 s each
		synctest.Wait()
		if got := w.api.Pod(healthy).Status.Phase; got != v1.PodRunning {
			t.Errorf("the healthy pod is %s in the API, want Running although 40 others hang", got)
		}
		pending := w.manager.Pending()
		if len(pending) != 41 {
			t.Errorf("%d pods pending, want the 40 that hang and the one that fails", len(pending))
		}
		w.api.SetFault(nil)
		pass(2 * time.Minute)
		w.wantNothingPending()
	})
}

// drift has a second writer change a pod's status in the API.
func drift(w *world, pod *v1.Pod) {
	changed := w.api.Pod(pod)
	changed.Status.Reason = "Drifted"
	w.api.Put(changed)
}

func TestFlushDoesNotWaitForWhatIsReportedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.api.SetLatency(time.Second)
		w.set(pod, running(pod, false))
		begin := time.Now()
		time.AfterFunc(time.Second/2, func() { w.set(pod, running(pod, true)) })
		if err := w.manager.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if got := time.Since(begin); got != time.Second {
			t.Errorf("Flush took %v, want the second that the first request takes: the second report came after the call", got)
		}
	})
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.api.SetLatency(time.Second)
		a, b := w.create("a"), w.create("b")
		w.run()
		time.Sleep(2 * time.Second)
		w.set(a, running(a, true))
		begin := time.Now()
		if err := w.manager.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(begin); got != time.Second {
			t.Errorf("Flush took %v, want the second that the request takes", got)
		}
		w.api.SetFault(func(context.Context, statustest.Request) error { return errors.New("connection refused") })
		w.set(a, running(a, false))
		w.set(b, running(b, true))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		flushError, ok := errors.AsType[*FlushError](w.manager.Flush(ctx))
		if !ok || len(flushError.Left) != 2 || flushError.Left[0].Name != "a" || !errors.Is(flushError, context.DeadlineExceeded) {
			t.Errorf("Flush of what cannot be delivered returned %v, want both pods named", flushError)
		}
	})
}

// Invariant 10, clean exit: goleak in TestMain checks that nothing is left.
func TestShutdownWithWorkQueuedAndInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Workers = 2 })
		for i := range 10 {
			w.create(fmt.Sprint("pod-", i))
		}
		w.run()
		w.api.SetFault(func(context.Context, statustest.Request) error { return statustest.ErrHang })
		for i := range 10 {
			pod, _ := w.table.ByUID(types.UID(fmt.Sprintf("pod-%d-uid", i)))
			w.set(pod, running(pod, true))
		}
		time.Sleep(time.Second)
		w.stop()
		if got := len(w.manager.Pending()); got != 10 {
			t.Errorf("%d pods are pending after the stop, want all 10", got)
		}
	})
}
