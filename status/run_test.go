package status

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/statustest"
)

// Outside a running manager nothing is ever sent, and Flush says so at once.
func TestFlushOutsideRun_ReturnsErrNotRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web")
		flush := func(when string, left int) {
			t.Helper()
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			err := w.manager.Flush(ctx)
			if !errors.Is(err, ErrNotRunning) || time.Since(begin) > time.Second {
				t.Errorf("%s: Flush returned %v after %v, want ErrNotRunning at once", when, err, time.Since(begin))
			}
			if named, _ := errors.AsType[*FlushError](err); left > 0 && (named == nil || len(named.Left) != left) {
				t.Errorf("%s: Flush returned %v, want the %d pods that are left", when, err, left)
			}
		}
		flush("before Run, with nothing to send", 0)
		w.set(pod, running(pod, true))
		flush("before Run", 1)
		if got := w.manager.Pending(); len(got) != 1 || got[0].Reason != stallNotRunning {
			t.Errorf("before Run: Pending says %+v, want %q", got, stallNotRunning)
		}
		w.run()
		must(w.manager.Flush(t.Context()))
		w.stop()
		w.set(pod, running(pod, false))
		flush("after Run", 1)
	})
}

// A program calls Run in a goroutine, and may flush before the goroutine has begun.
func TestFlushBeforeRunHasBegun_Delivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web")
		w.set(pod, running(pod, true))
		ctx, stop := context.WithCancel(t.Context())
		flushed := make(chan error)
		go func() { flushed <- w.manager.Flush(ctx) }()
		synctest.Wait()
		done := make(chan error)
		go func() { done <- w.manager.Run(ctx) }()
		if err := <-flushed; err != nil {
			t.Errorf("Flush returned %v", err)
		}
		stop()
		must(<-done)
	})
}

// Flush does not wait for a Run that ends meanwhile.
func TestFlushDuringTheEndOfRun_ReturnsErrNotRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.api.SetFault(statustest.Always(statustest.ErrRefused))
		w.set(pod, running(pod, true))
		time.AfterFunc(time.Minute, w.stop)
		begin := time.Now()
		err := w.manager.Flush(t.Context())
		if !errors.Is(err, ErrNotRunning) || time.Since(begin) > 2*time.Minute {
			t.Errorf("Flush returned %v after %v, want ErrNotRunning with the end of Run", err, time.Since(begin))
		}
	})
}

// Shutdown delivers what is there and ends Run.
func TestShutdown_DeliversAndEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web")
		w.api.SetLatency(time.Second)
		done := make(chan error, 1)
		go func() { done <- w.manager.Run(t.Context()) }()
		synctest.Wait()
		w.set(pod, running(pod, true))
		if err := w.manager.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodRunning {
			t.Errorf("the API says %q after Shutdown", got)
		}
		if err := w.manager.Run(t.Context()); !errors.Is(err, ErrShutdown) {
			t.Errorf("Run after Shutdown returned %v, want ErrShutdown", err)
		}
		if err := w.manager.Shutdown(t.Context()); err != nil {
			t.Errorf("a second Shutdown: %v", err)
		}
	})
}

// With signal.NotifyContext, Run ends before the program comes to Shutdown.
func TestShutdownAfterRun_DeliversWhatIsLeft(t *testing.T) {
	for _, reported := range []string{"before the end of Run", "after the end of Run", "without a Run"} {
		t.Run(reported, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pod := w.create("web")
				if reported != "without a Run" {
					w.run()
					w.api.SetFault(statustest.Always(statustest.ErrRefused))
				}
				if reported == "before the end of Run" {
					w.set(pod, running(pod, true))
				}
				if w.stop != nil {
					w.stop()
				}
				w.api.SetFault(nil)
				w.set(pod, running(pod, true))
				if err := w.manager.Shutdown(t.Context()); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				if got := w.api.Pod(pod).Status.Phase; got != v1.PodRunning {
					t.Errorf("the API says %q after Shutdown", got)
				}
			})
		})
	}
}

// An API server that is away holds Shutdown up no longer than its context.
func TestShutdownOfWhatCannotBeDelivered_EndsWithItsContext(t *testing.T) {
	for _, runs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			pod := w.create("web")
			w.api.SetFault(statustest.Always(statustest.ErrRefused))
			w.set(pod, running(pod, true))
			done := make(chan error, 1)
			if runs {
				go func() { done <- w.manager.Run(t.Context()) }()
				synctest.Wait()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := w.manager.Shutdown(ctx)
			if left, ok := errors.AsType[*FlushError](err); !ok || len(left.Left) != 1 || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Shutdown returned %v, want the pod that is left", err)
			}
			if runs {
				must(<-done)
			}
		})
	}
}

// Two Runs at once would send each status twice.
func TestRunTwiceAtOnce_IsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run()
		if err := w.manager.Run(t.Context()); !errors.Is(err, errRunTwice) {
			t.Errorf("a second Run returned %v, want errRunTwice", err)
		}
	})
}

// A manager whose Run has ended may run again, and goes on where it was.
func TestRunAgain_GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web")
		unknown := newPod("unseen") // no watch has shown it, so the full pass does not come to it
		w.run()
		w.api.SetFault(statustest.Always(statustest.ErrRefused))
		w.set(pod, running(pod, true))
		w.set(unknown, running(unknown, true))
		w.stop()
		w.api.SetFault(nil)
		w.api.OnStore(nil)
		w.api.Put(unknown)
		w.run()
		begin := time.Now()
		must(w.manager.Flush(t.Context()))
		for _, p := range []*v1.Pod{pod, unknown} {
			if got := w.api.Pod(p).Status.Phase; got != v1.PodRunning {
				t.Errorf("the API says %q of %s in the second Run", got, p.Name)
			}
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("what was left of the first Run took %v", took)
		}
		if got := w.counter("statusd_pod_status_pending"); got != 0 {
			t.Errorf("%v pods are pending in the metrics", got)
		}
	})
}

// A node that may not list its pods sends nothing, and says why.
func TestListIsForbidden_PendingAndFlushSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web")
		w.api.SetFault(statustest.On("LIST", apierrors.NewForbidden(podResource, "", errors.New("no list for you"))))
		w.run()
		w.set(pod, running(pod, true))
		time.Sleep(time.Minute)
		got := w.manager.Pending()
		if len(got) != 1 || !apierrors.IsForbidden(got[0].Err) || got[0].Attempts == 0 || got[0].NextTry.Before(time.Now()) || got[0].Reason != stallUnlisted {
			t.Errorf("Pending says %+v", got)
		}
		if d, _ := w.manager.Delivery(pod.UID); d.Error == "" || d.Held != stallUnlisted {
			t.Errorf("Delivery says %+v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.manager.Flush(ctx); err == nil || !strings.Contains(err.Error(), "no list for you") {
			t.Errorf("Flush returned %v", err)
		}
		w.api.SetFault(nil)
		must(w.manager.Flush(t.Context()))
		w.wantNothingPending()
	})
}
