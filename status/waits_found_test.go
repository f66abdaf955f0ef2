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
		w.report(pod, status)
		time.Sleep(time.Minute)
		w.api.Change(pod, func(p *v1.Pod) { p.Status.PodIP, p.Status.PodIPs, p.Status.StartTime = "", nil, nil })
		synctest.Wait()
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitOverruled.String() {
			t.Errorf("pending is %+v, want the pod that the server overrules", pending)
		}
		lose(w, pod)
		pass(time.Second)
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
		pass(5*time.Second + 1100*time.Millisecond)
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

// A pod that is reported again while the server does not delete it waits for its next try all the same.
func TestDeletionThatKeepsFailing_IsNotHurriedByReports(t *testing.T) {
	for deletes, want := range map[bool]time.Time{true: after(30 * time.Second), false: after(5 * time.Second)} {
		q := newQueue()
		q.add("web", withdrawal, after(0))
		q.take(withdrawal, after(0))
		q.retry("web", withdrawal, after(0), after(30*time.Second), true)
		q.jobs["web"].deletes = deletes
		q.hurry("web", after(5*time.Second))
		if got := q.jobs["web"].notBefore; !got.Equal(want) {
			t.Errorf("deletes: %v: the next try is after %s, want %s", deletes, got.Sub(after(0)), want.Sub(after(0)))
		}
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

// A server that asked for a pause answers again, and refuses the only probe: the pod's name belongs to another node by now. Any
// answer shows that the pause is over.
func TestDenialInAPause_EndsThePauseForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pods := readyPods(w, 3)
		w.api.SetFault(statustest.Always(statustest.Throttled(3600)))
		lose(w, pods[0])
		synctest.Wait()
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.PodName() == pods[1].Name {
				return statustest.Forbidden(r, "policy")
			}
			return nil
		})
		lose(w, pods[2])
		lose(w, pods[1]) // the newest is the first probe
		time.Sleep(probeEvery)
		synctest.Wait()
		w.wantReady(pods[2], false)
	})
}

// A pod whose writes conflict, or are refused, is tried every ten seconds while its readiness is wrong, as a kubelet does.
func TestReadinessThatIsRefused_IsTriedEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.Verb == "PATCH" {
				return apierrors.NewConflict(podResource, r.PodName(), errors.New("the object has been modified"))
			}
			return nil
		})
		lose(w, pod)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if next := time.Until(w.manager.Pending()[0].NextTry); next > graveWait {
			t.Errorf("Pending says that the next try is in %s, want at most %s", next, graveWait)
		}
		w.api.SetFault(nil)
		time.Sleep(graveWait + time.Second)
		synctest.Wait()
		w.wantReady(pod, false)
	})
}

// An end that is reported while an older status is sent without a field that the server refuses does not wait until the
// field is tried again.
func TestEndDuringARequestThatIsRefusedInPart_IsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("pod", restartNever)
		w.run()
		synctest.Wait()
		w.api.SetLatency(50 * time.Millisecond)
		status := running(pod, true)
		status.QOSClass = v1.PodQOSGuaranteed // which the server refuses
		w.set(pod, status)
		time.Sleep(20 * time.Millisecond)
		status = ended(pod, 1)
		status.QOSClass = v1.PodQOSGuaranteed
		w.set(pod, status)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.api.Pod(pod).Status.Phase; got != status.Phase {
			t.Errorf("the API says %s, want %s", got, status.Phase)
		}
	})
}

// A static pod that has ended gets its mirror during a pause. Its end is no background work, which waits for as long again
// as the pause was.
func TestEndOfAStaticPodWhoseMirrorComes_IsUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := newPod("static", staticPod)
		w.table.Set(pod)
		w.set(pod, ended(pod, 0))
		busy := readyPods(w, 1)[0]
		w.api.SetFault(statustest.Always(statustest.Throttled(30)))
		lose(w, busy)
		time.Sleep(29 * time.Second)
		w.api.SetFault(nil)
		w.api.Put(mirrorOf(pod, "mirror"))
		time.Sleep(healedWithin)
		synctest.Wait()
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodSucceeded {
			t.Errorf("the API says %s, want Succeeded", got)
		}
	})
}

// While a pod backs off, another writer makes its readiness wrong. The pod does not wait for the end of its back-off.
func TestReadinessThatIsTakenAwayDuringABackOff_IsBackSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetFault(statustest.Always(apierrors.NewUnauthorized("token expired")))
		status := running(pod, true)
		status.Message = "a new report"
		w.set(pod, status)
		time.Sleep(5 * time.Minute)
		w.api.ForgetRequests()
		for len(w.api.Requests()) == 0 { // until the next try has failed
			time.Sleep(100 * time.Millisecond)
		}
		w.api.SetFault(nil)
		w.api.Change(pod, func(p *v1.Pod) {
			podstatus.FindCondition(p.Status.Conditions, v1.PodReady).Status = v1.ConditionFalse
		})
		time.Sleep(time.Second)
		synctest.Wait()
		w.wantReady(pod, true)
	})
}

// In a pause, turns that need no request are no probes: the next pod is tried in their place.
func TestTurnsWithoutARequestInAPause_AreNoProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pods := readyPods(w, 2)
		w.api.SetFault(statustest.Always(statustest.Throttled(30)))
		lose(w, pods[0])
		synctest.Wait()
		w.api.SetFault(nil)
		lose(w, pods[1])
		for i := range 6 { // static pods without mirrors have nothing to send to
			pod := newPod(fmt.Sprint("static-", i), staticPod)
			w.table.Set(pod)
			w.set(pod, ended(pod, 0))
		}
		time.Sleep(probeEvery)
		synctest.Wait()
		w.wantReady(pods[1], false)
	})
}
