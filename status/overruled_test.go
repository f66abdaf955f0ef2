package status

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// keepReady is a webhook with a bug: no pod may lose readiness.
func keepReady(pod *v1.Pod) {
	for _, kind := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		if c := podstatus.FindCondition(pod.Status.Conditions, kind); c != nil {
			c.Status, c.Reason, c.Message = v1.ConditionTrue, "", ""
		}
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = true
	}
}

// keepRunning is a webhook with a bug: no pod may end.
func keepRunning(pod *v1.Pod) {
	if podstatus.IsTerminal(pod.Status.Phase) {
		pod.Status.Phase = v1.PodRunning
	}
}

// wantOverruled checks that a pod counts as not delivered by the server's decision.
func (w *world) wantOverruled(pod *v1.Pod) {
	w.Helper()
	synctest.Wait()
	pending := w.manager.Pending()
	if len(pending) != 1 || pending[0].UID != pod.UID || pending[0].Reason != waitOverruled.String() || pending[0].Accepted >= pending[0].Version {
		w.Errorf("pending is %+v, want %s, which the server overrules", pending, pod.Name)
	}
	ctx, cancel := context.WithTimeout(w.Context(), time.Second)
	defer cancel()
	if err := w.manager.Flush(ctx); err == nil {
		w.Error("Flush calls delivered what the API does not have")
	}
}

// Invariant 13, never gives up: a webhook with a bug is rolled back, and no event shows that.
func TestReadinessThatAWebhookKeptIsSentAgain(t *testing.T) {
	for _, lasts := range []time.Duration{time.Second, time.Minute, time.Hour} {
		t.Run(lasts.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pod := readyPods(w, 1)[0]
				w.api.SetWebhook(keepReady)
				lose(w, pod)
				w.wantOverruled(pod)
				time.Sleep(lasts)
				if got, most := w.api.Count("PATCH"), 10+int(lasts.Minutes())*8; got > most {
					t.Errorf("%d writes in %v, want at most %d", got, lasts, most)
				}
				w.api.SetWebhook(nil)
				pass(time.Minute)
				w.wantReady(pod, false)
				w.wantNothingPending()
			})
		})
	}
}

func TestEndThatAWebhookKeptIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := journal.NewMemory()
		w, pod := newWorld(t, func(o *Options) { o.Journal = kept }).runWith("job", restartNever)
		w.report(pod, running(pod, true))
		w.api.SetWebhook(keepRunning)
		w.set(pod, ended(pod, 1))
		w.wantOverruled(pod)
		time.Sleep(time.Minute)
		if len(kept.Finals()) != 1 {
			t.Error("the journal has forgotten an end that the API does not have")
		}
		w.api.SetWebhook(nil)
		pass(time.Minute)
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodFailed {
			t.Errorf("a minute after the webhook the API says %s, want Failed", got)
		}
		w.wantNothingPending()
	})
}

// What shows that the decider is gone ends the wait.
func TestSignsThatADeciderIsGoneEndTheWait(t *testing.T) {
	for name, sign := range map[string]func(w *world, pods []*v1.Pod){
		"another pod's status is stored as it was sent": func(w *world, pods []*v1.Pod) { lose(w, pods[1]) },
		"another writer comes through": func(w *world, pods []*v1.Pod) {
			w.api.Change(pods[0], func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} })
		},
		"the pod has another status": func(w *world, pods []*v1.Pod) {
			status := running(pods[0], false)
			status.PodIP, status.PodIPs = "10.0.0.9", []v1.PodIP{{IP: "10.0.0.9"}}
			w.set(pods[0], status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pods := readyPods(w, 2)
				w.api.SetWebhook(keepReady)
				lose(w, pods[0])
				for w.wantOverruled(pods[0]); time.Until(w.manager.Pending()[0].NextTry) < questionPause+2*time.Second; {
					time.Sleep(time.Second)
				}
				time.Sleep(questionPause) // the last try is not of this moment
				w.api.SetWebhook(nil)
				sign(w, pods)
				pass(time.Second)
				w.wantReady(pods[0], false)
				w.wantNothingPending()
			})
		})
	}
}

// A finished pod is deleted whatever the server has made of the rest of its status.
func TestOverruledPodThatIsGone_HoldsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pods := readyPods(w, 2)
		w.api.SetWebhook(func(p *v1.Pod) { p.Status.Reason = "theirs" })
		w.set(pods[0], running(pods[0], false))
		time.Sleep(time.Second)
		w.set(pods[1], running(pods[1], false))
		time.Sleep(time.Second)
		w.api.Remove(pods[0].Namespace, pods[0].Name)
		time.Sleep(time.Hour)
		w.api.SetWebhook(nil)
		pass(2 * time.Minute)
		if got := w.api.Pod(pods[1]).Status.Reason; got != "" {
			t.Errorf("the API says %q two minutes after the webhook is gone", got)
		}
	})
}

func TestOverruledStatusOfAFinishedPodDoesNotHoldItsDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pod := newWorld(t).runWith("web", restartNever)
		w.api.SetWebhook(func(p *v1.Pod) { p.Status.Message = "theirs" })
		w.api.Change(pod, deleting)
		w.set(pod, ended(pod, 0))
		must(w.manager.TerminatePod(w.api.Pod(pod)))
		pass(time.Second)
		if w.api.Pod(pod) != nil {
			t.Errorf("it is still there: %s", fmt.Sprint(w.manager.Pending()))
		}
	})
}
