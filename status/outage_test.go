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

// lose reports that a pod is not ready any more.
func lose(w *world, pod *v1.Pod) {
	w.Helper()
	if err := w.manager.SetContainerReadiness(pod.UID, "process://"+string(pod.UID), false); err != nil {
		w.Errorf("SetContainerReadiness(%s): %v", pod.Name, err)
	}
}

// patchedAt returns when the pod was last patched with success, as a time since begin.
func patchedAt(w *world, pod *v1.Pod, begin time.Time) time.Duration {
	w.Helper()
	at := time.Duration(-1)
	for _, s := range w.api.Requests() {
		if s.Verb == "PATCH" && s.Name == pod.Namespace+"/"+pod.Name && s.Err == nil {
			at = s.At.Sub(begin)
		}
	}
	if at < 0 {
		w.Fatalf("%s was not patched", pod.Name)
	}
	return at
}

// readyPods creates pods that are Running and Ready in the API, and starts the manager.
func readyPods(w *world, n int) []*v1.Pod {
	var list []*v1.Pod
	for i := range n {
		pod := w.create(fmt.Sprint("pod-", i))
		w.set(pod, running(pod, true))
		list = append(list, pod)
	}
	w.run()
	pass(time.Minute)
	w.api.ForgetRequests()
	return list
}

func down(context.Context, statustest.Request) error { return statustest.ErrRefused }

// A proxy's maintenance page may ask for a day.
func TestRetryAfterIsCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pods := readyPods(w, 2)
		w.api.SetFault(func(context.Context, statustest.Request) error {
			return apierrors.NewTooManyRequests("maintenance", 86400)
		})
		lose(w, pods[0])
		synctest.Wait()
		w.api.SetFault(nil)
		begin := time.Now()
		lose(w, pods[1])
		pass(time.Minute)
		if got := patchedAt(w, pods[1], begin); got > probeEvery {
			t.Errorf("the other pod's withdrawal arrived after %v, want a probe after %v", got, probeEvery)
		}
		if got := patchedAt(w, pods[0], begin); got > probeEvery+recoverySpread {
			t.Errorf("the refused pod arrived after %v: the probe's success should have ended its wait", got)
		}
		w.wantNothingPending()
	})
}

func TestAPauseIsProbedByOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pods := readyPods(w, 50)
		w.api.SetFault(func(context.Context, statustest.Request) error { return apierrors.NewTooManyRequests("busy", 3600) })
		for _, pod := range pods[:1] {
			lose(w, pod)
		}
		synctest.Wait()
		for _, pod := range pods[1:] {
			lose(w, pod)
		}
		w.api.ForgetRequests()
		pass(time.Minute)
		if got := w.api.Count("PATCH"); got != 12 {
			t.Errorf("%d requests in a minute of pause, want one each 5 s", got)
		}
	})
}

// What was under way when the server asked for a pause does not end it.
func TestAnOldSuccessDoesNotEndAPause(t *testing.T) {
	var h health
	began := after(0)
	h.record(outcome{requests: 1, failure: overloaded, pause: 10 * time.Second}, began, after(time.Second))
	if h.record(outcome{requests: 1, succeeded: true}, began, after(2*time.Second)) || !h.paused(after(3*time.Second)) {
		t.Error("the success of a request from before the pause has ended it")
	}
	if !h.record(outcome{requests: 1, succeeded: true}, after(3*time.Second), after(4*time.Second)) || h.paused(after(4*time.Second)) {
		t.Error("the success of a probe has not ended the pause")
	}
	if got, want := h.backgroundFrom(), after(7*time.Second); !got.Equal(want) {
		t.Errorf("background work goes on at %v, want %v: as long again as the pause lasted", got, want)
	}
}

func TestHeldBackgroundWorkThatBecomesAWithdrawalGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pods := readyPods(w, 2)
		throttle := true
		w.api.SetFault(func(context.Context, statustest.Request) error {
			if throttle {
				throttle = false
				return apierrors.NewTooManyRequests("busy", 5)
			}
			return nil
		})
		lose(w, pods[0])
		synctest.Wait()
		drift(w, pods[1])
		time.Sleep(6 * time.Second) // the pause is over, for all but background work
		synctest.Wait()
		begin := time.Now()
		lose(w, pods[1])
		pass(time.Minute)
		if got := patchedAt(w, pods[1], begin); got != 0 {
			t.Errorf("the withdrawal waited %v where background work was held", got)
		}
	})
}

func TestTheFirstSuccessAfterAnOutageReleasesAll(t *testing.T) {
	for name, script := range map[string]func(context.Context, statustest.Request) error{
		"unreachable": down,
		"500":         func(context.Context, statustest.Request) error { return apierrors.NewInternalError(errors.New("etcd")) },
		"503":         func(context.Context, statustest.Request) error { return apierrors.NewServiceUnavailable("starting") },
		"timeout":     func(context.Context, statustest.Request) error { return statustest.ErrHang },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pods := readyPods(w, 101)
				w.api.SetFault(script)
				for _, pod := range pods[1:] {
					lose(w, pod)
				}
				time.Sleep(10 * time.Minute)
				w.api.SetFault(nil)
				w.api.ForgetRequests()
				begin := time.Now()
				lose(w, pods[0]) // succeeds at once
				pass(time.Minute)
				latest := time.Duration(0)
				seconds := map[time.Duration]int{}
				for _, pod := range pods[1:] {
					at := patchedAt(w, pod, begin)
					latest = max(latest, at)
					seconds[at.Truncate(time.Second)]++
				}
				// Those that hang when the server comes back have their own timeout.
				if name == "timeout" {
					latest -= 30 * time.Second
				}
				if latest > recoverySpread {
					t.Errorf("the last of 100 pods came %v after the first success, want at most %v", latest, recoverySpread)
				}
				// Half of them by the spread, and those of the others whose own try was due by chance.
				if name != "timeout" && seconds[0] > 75 {
					t.Errorf("%d of 100 pods came in the first second: they should be spread", seconds[0])
				}
				w.wantNothingPending()
			})
		})
	}
}

// With a lone pod there is no other success to go by: its own news is a probe.
func TestAWithdrawalAfterAnOutageGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetFault(down)
		status := running(pod, true)
		status.Message = "a change that nothing waits for"
		w.set(pod, status)
		pass(10 * time.Minute)
		tries := w.api.Requests()
		time.Sleep(time.Until(tries[len(tries)-1].At.Add(2 * time.Second))) // between two tries
		w.api.SetFault(nil)
		w.api.ForgetRequests()
		begin := time.Now()
		lose(w, pod)
		pass(time.Minute)
		if got := patchedAt(w, pod, begin); got > time.Second {
			t.Errorf("the withdrawal waited %v for the end of the back-off", got)
		}
	})
}

// News does not make an outage worse: all pods together try once a second because of it.
func TestWithdrawalsDuringAnOutageAreTriedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pods := readyPods(w, 100)
		w.api.SetFault(down)
		flip := func(ready bool) {
			for _, pod := range pods {
				must(w.manager.SetContainerReadiness(pod.UID, "process://"+string(pod.UID), ready))
			}
		}
		flip(false)
		pass(10 * time.Minute)
		w.api.ForgetRequests()
		for i := range 60 { // a minute in which each pod flaps
			flip(i%2 == 0)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		// 100 pods with 24 to 30 s between their own tries, and one more each second.
		if got := w.api.Count("PATCH"); got > 250+60 {
			t.Errorf("%d requests in a minute of outage, want at most 310", got)
		}
	})
}

// A server on which everything is slow must not get ever more requests.
func TestInFlightIsBoundedWhenEveryRequestIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Workers = 48 })
		pods := readyPods(w, 1000)
		var inFlight, most atomic.Int64
		w.api.SetFault(func(ctx context.Context, s statustest.Request) error {
			if n := inFlight.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer inFlight.Add(-1)
			select {
			case <-time.After(25 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		for _, pod := range pods {
			lose(w, pod)
		}
		pass(10 * time.Minute)
		if got := most.Load(); got > 2*48 {
			t.Errorf("%d requests in flight with 48 workers, want at most 96", got)
		}
		w.api.SetFault(nil)
		pass(time.Hour)
		w.wantNothingPending()
	})
}

func TestPausesAreBounded(t *testing.T) {
	for asked, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 5: 5 * time.Second, 30: 30 * time.Second, 86400: 30 * time.Second} {
		if got := pauseAsked(apierrors.NewTooManyRequests("busy", asked)); got != want {
			t.Errorf("a server that asks for %d s gets %v, want %v", asked, got, want)
		}
	}
	if got := pauseAsked(statustest.ErrRefused); got != 0 {
		t.Errorf("a server that cannot be reached gets a pause of %v", got)
	}
}

func TestTheFirstLookIsNotPutOffForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web")
		w.set(pod, running(pod, true))
		w.api.SetFault(func(context.Context, statustest.Request) error {
			return apierrors.NewTooManyRequests("maintenance", 86400)
		})
		w.run()
		w.api.SetFault(nil)
		pass(longestPause)
		w.wantNothingPending()
	})
}

// A probe that is due and has no token waits for the token, and not in a loop.
func TestAProbeWaitsForATokenWithoutSpinning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.QPS, o.Burst = 0.1, 1 })
		pods := []*v1.Pod{w.create("a"), w.create("b")}
		w.run()
		w.api.SetFault(func(context.Context, statustest.Request) error { return apierrors.NewTooManyRequests("busy", 3600) })
		for _, pod := range pods {
			w.set(pod, running(pod, true))
		}
		pass(time.Minute)
		if got := w.api.Count("PATCH"); got < 5 || got > 7 {
			t.Errorf("%d requests in a minute of pause with a token each 10 s, want about 6", got)
		}
	})
}
