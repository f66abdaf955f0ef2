package status

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// These waits were found by the random machine once the model excused fewer pods.

// A webhook changes a detail, and another writer has changed the pod since. A loss of readiness does not wait
// until the detail is tried again.
func TestReportAfterAForeignWriteOverAnOverruledStatus_IsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetWebhook(func(p *v1.Pod) {
			if c := podstatus.FindCondition(p.Status.Conditions, v1.PodScheduled); c != nil {
				c.Message = "changed"
			}
		})
		status := running(pod, true)
		status.Message = "a new report"
		w.set(pod, status)
		synctest.Wait()
		time.Sleep(time.Minute)
		w.api.Change(pod, func(p *v1.Pod) { p.Status.PodIP, p.Status.PodIPs, p.Status.StartTime = "", nil, nil })
		synctest.Wait()
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitOverruled.String() {
			t.Errorf("pending is %+v, want the pod that the server overrules", pending)
		}
		lose(w, pod)
		time.Sleep(time.Second)
		synctest.Wait()
		w.wantReady(pod, false)
	})
}

// A report during a request that hangs is tried a second after the request has timed out, as a report after it would be.
func TestReportDuringAHungRequest_IsTriedASecondAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.RequestTimeout = 5 * time.Second })
		pods := readyPods(w, 1)
		w.api.SetFault(func(context.Context, statustest.Request) error { return statustest.ErrHang })
		lose(w, pods[0])
		time.Sleep(4 * time.Minute) // it has backed off for long
		for len(w.api.Requests()) > 0 {
			w.api.ForgetRequests()
			time.Sleep(time.Second)
		}
		for len(w.api.Requests()) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		w.api.SetFault(nil)
		must(w.manager.SetContainerReadiness(pods[0].UID, "process://"+string(pods[0].UID), true))
		must(w.manager.SetContainerReadiness(pods[0].UID, "process://"+string(pods[0].UID), false))
		w.api.ForgetRequests()
		time.Sleep(5*time.Second + 1100*time.Millisecond)
		synctest.Wait()
		w.wantReady(pods[0], false)
	})
}

// A request that began when the server asked for a pause, and not after it, does not show that others are served meanwhile.
func TestPauseIsNotSingledOutByARequestOfTheSameInstant(t *testing.T) {
	var h health
	h.record(outcome{requests: 1, succeeded: true}, after(time.Second), after(time.Second))
	if h.singlesOut(after(time.Second), after(11*time.Second)) {
		t.Error("the pause counts as one for some pods, although no other was served since")
	}
	h.record(outcome{requests: 1, succeeded: true}, after(2*time.Second), after(2*time.Second))
	if !h.singlesOut(after(time.Second), after(11*time.Second)) {
		t.Error("the pause counts as one for all, although another pod was served since")
	}
}

// A deletion that a webhook denies is not the probe of a pause, time and again, while another pod waits.
func TestDeniedDeletionIsNoProbeOfAPause(t *testing.T) {
	q := newQueue()
	q.add("deleted", withdrawal, after(0))
	q.take(withdrawal, after(0))
	q.retry("deleted", withdrawal, after(0), after(time.Second), false)
	q.jobs["deleted"].deletes = true
	q.pausedUntil = after(30 * time.Second)
	q.add("web", start, after(0))
	if u, _, ok := q.turn(after(5 * time.Second)); !ok || u != start {
		t.Errorf("the probe is of class %v (%v), want the pod that starts", u, ok)
	}
	if u, _, ok := q.turn(after(31 * time.Second)); !ok || u != withdrawal {
		t.Errorf("after the pause class %v (%v) is first, want the deletion", u, ok)
	}
}

func TestPendingNamesTheEndOfAPauseAsTheNextTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetFault(func(context.Context, statustest.Request) error { return statustest.Throttled(30) })
		lose(w, pod)
		synctest.Wait()
		if next := time.Until(w.manager.Pending()[0].NextTry); next != 30*time.Second {
			t.Errorf("Pending says that the next try is in %s, want 30s: the server asked for that", next)
		}
	})
}
