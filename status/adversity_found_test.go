package status

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// Programs of TestInvariantsHoldWhateverHappens that have found something, in short.

// A pod that was read because the server contradicted the base is the base of later turns too,
// also if this turn's write then fails: the watch may be far behind, and show what is to be written.
func TestWhatWasReadIsNotForgottenWhenTheWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.report(pod, running(pod, true))
		w.api.OnStore(nil)
		w.report(pod, running(pod, false))
		w.api.ForgetRequests()
		conflicts := 2 // before the look and after it
		w.api.SetFault(func(_ context.Context, s statustest.Request) error {
			if s.Verb == "PATCH" && conflicts > 0 {
				conflicts--
				return apierrors.NewConflict(podResource, "web", errors.New("the object has been modified"))
			}
			return nil
		})
		w.set(pod, running(pod, true))
		time.Sleep(time.Second)
		w.wantLog("the next turn knows what was read", "PATCH ns/web", "GET ns/web", "PATCH ns/web", "PATCH ns/web")
		w.wantReady(pod, true)
	})
}

// A patch is a difference. After a restore it may be taken without bringing the end along.
func TestTheJournalKeepsAnEndThatTheAPIHasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w, pod := newWorld(t, withJournal(memory)).runWith("job", restartNever)
		w.report(pod, running(pod, true))
		backup := w.api.Backup()
		w.report(pod, ended(pod, 1))
		w.api.OnStore(nil)
		w.api.Restore(backup)
		// No more than the first request, which is one of the old world, gets through.
		through := 0
		w.api.SetFault(func(context.Context, statustest.Request) error {
			if through++; through > 1 {
				return statustest.ErrRefused
			}
			return nil
		})
		again := ended(pod, 1)
		again.HostIP = "192.0.2.9" // not what explains the phase, which is written over no other one
		w.set(pod, again)
		pass(time.Minute)
		if _, kept := memory.Finals()[pod.UID]; !kept && !podstatus.IsTerminal(w.api.Pod(pod).Status.Phase) {
			t.Error("the end is neither in the journal nor in the API")
		}
		w.api.SetFault(nil)
		pass(restoredWithin)
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodFailed {
			t.Errorf("the API says %s of a pod that has failed", got)
		}
		if len(memory.Finals()) != 1 {
			t.Error("the journal has lost the end of a pod that is there")
		}
	})
}

// A pod that has two reasons to wait in turn waits no less for it.
func TestTwoObstaclesInTurnDoNotShortenTheWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w, pod := newWorld(t, func(o *Options) { o.Safety = g }).runWith("web", restartNever)
		w.api.SetWebhook(func(p *v1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil })
		n := 0
		w.api.SetFault(func(context.Context, statustest.Request) error {
			if n++; n%2 == 0 {
				return apierrors.NewServiceUnavailable("not now")
			}
			return nil
		})
		evicted := running(pod, true)
		evicted.Phase, evicted.Reason = v1.PodFailed, "Evicted"
		w.set(pod, evicted)
		pass(10 * time.Minute)
		if got := w.api.Count("PATCH"); got > 130 {
			t.Errorf("%d patches in 10 minutes, want no more than one each 5 s", got)
		}
	})
}

// After a restore the server gives versions out again. What then has the version of an own
// write need not be its echo.
func TestAVersionThatIsGivenOutAgainIsNoEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web")
		w.report(pod, running(pod, true))
		backup := w.api.Backup()
		w.report(pod, running(pod, false))
		written := w.api.Pod(pod).ResourceVersion
		w.api.OnStore(nil)
		w.api.Restore(backup)
		w.api.OnStore(w.deliver)
		touched := w.api.Change(pod, func(p *v1.Pod) { p.Annotations = map[string]string{"touched": ""} })
		if touched.ResourceVersion != written {
			t.Fatalf("the version is %s, want %s once more", touched.ResourceVersion, written)
		}
		synctest.Wait()
		w.wantReady(pod, false)
	})
}

// Nothing is sent before the first look, so that this look must not wait for long.
func TestAStartDuringAnOutageIsHeardSoonAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web")
		outage := w.outage(10 * time.Minute)
		w.run()
		w.set(pod, running(pod, true))
		<-outage
		pass(healedWithin)
		w.wantReady(pod, true)
	})
}
