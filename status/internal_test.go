package status

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// A pod with which the server always fails is no outage: on a quiet node it was tried each 5 s, as a probe.
func TestPodThatAlwaysGetsInternalErrors_BacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.Verb == "PATCH" {
				return apierrors.NewInternalError(errors.New("boom"))
			}
			return nil
		})
		lose(w, pod)
		pass(graveFor + time.Minute)
		w.api.ForgetRequests()
		pass(time.Hour)
		if got := len(w.api.Log()); got < 100 || got > 200 {
			t.Errorf("%d requests in an hour, want a try each 24 to 30 s, and each fourth once more without the lists", got)
		}
		w.api.SetFault(nil)
		pass(30 * time.Second)
		w.wantReady(pod, false)
		w.wantNothingPending()
	})
}

// Within the first minutes its readiness is right soon after the failures end, with no other pod to show that they have.
func TestReadinessAfterInternalErrors_IsRightWithin15s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetFault(func(context.Context, statustest.Request) error { return apierrors.NewInternalError(errors.New("boom")) })
		lose(w, pod)
		pass(5 * time.Minute)
		if next := time.Until(w.manager.Pending()[0].NextTry); next > graveWait {
			t.Errorf("Pending says that the next try is in %s, want at most %s", next, graveWait)
		}
		w.api.SetFault(nil)
		pass(healedWithin)
		w.wantReady(pod, false)
		w.wantNothingPending()
	})
}

// If the server fails with the containers of a pod, readiness and phase are sent without them.
func TestStatusThatTheServerFailsWith_IsSentWithoutItsLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.Verb == "PATCH" && strings.Contains(string(r.Body), "containerStatuses") {
				return apierrors.NewInternalError(errors.New("boom"))
			}
			return nil
		})
		lose(w, pod)
		pass(healedWithin)
		w.wantReady(pod, false)
		if pending := w.manager.Pending(); len(pending) != 1 || !slices.Contains(pending[0].Refused, "status.containerStatuses") || pending[0].Err == nil {
			t.Errorf("pending is %+v, want the containers", pending)
		}
		w.api.ForgetRequests()
		pass(time.Hour)
		if got := len(w.api.Log()); got > 20 {
			t.Errorf("%d requests in an hour, want one each 10 minutes", got)
		}
		w.api.SetFault(nil)
		pass(refusedBackoff.Limit)
		w.wantAgreement(pod)
		w.wantNothingPending()
	})
}

// A server that fails now and then, or with one pod for some seconds, does not fail with the lists of the pod: its end has exit codes.
func TestEndThatTheServerFailsWith_HasItsExitCodes(t *testing.T) {
	for name, before := range map[string]func(w *world, pod *v1.Pod){
		"a running pod": func(*world, *v1.Pod) {},
		"a pod whose lists were left out": func(w *world, pod *v1.Pod) {
			w.set(pod, edited(running(pod, true), func(s *v1.PodStatus) { s.ContainerStatuses[0].RestartCount++ }))
			pass(15 * time.Second)
			if pending := w.manager.Pending(); len(pending) != 1 || len(pending[0].Refused) == 0 {
				t.Fatalf("pending is %+v, want the containers", pending)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pods := readyPods(w, 2)
				pod := pods[0]
				w.api.SetFault(func(_ context.Context, r statustest.Request) error {
					if r.Verb == "PATCH" && r.PodName() == pod.Name && strings.Contains(string(r.Body), "containerStatuses") {
						return apierrors.NewInternalError(errors.New("boom"))
					}
					return nil
				})
				before(w, pod)
				w.set(pod, ended(pod, 2))
				for i := range 30 { // the server serves the other pod
					w.set(pods[1], running(pods[1], i%2 == 1))
					pass(time.Second)
					if got := w.api.Pod(pod).Status; podstatus.IsTerminal(got.Phase) {
						t.Fatalf("after %d s the API has an end without its exit code: %+v", i+1, got)
					}
				}
				w.api.SetFault(nil)
				pass(healedWithin)
				w.wantAgreement(pod)
				w.wantNothingPending()
			})
		})
	}
}

// A list that the server never takes does not keep an end away.
func TestEndWhoseListsTheServerNeverTakes_IsSentWithoutThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.Verb == "PATCH" && strings.Contains(string(r.Body), "containerStatuses") {
				return apierrors.NewInternalError(errors.New("boom"))
			}
			return nil
		})
		w.set(pod, ended(pod, 2))
		pass(2 * time.Minute)
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodFailed {
			t.Errorf("the API has phase %s, want Failed", got)
		}
	})
}

// A server that refuses the condition Ready by name has not taken the readiness: Flush does not say so, and it is tried again soon.
func TestReadinessThatTheServerRefuses_IsNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			var patch v1.Pod
			if r.Verb == "PATCH" {
				must(json.Unmarshal([]byte(r.Body), &patch))
			}
			if podstatus.FindCondition(patch.Status.Conditions, v1.PodReady) == nil {
				return nil
			}
			i := slices.IndexFunc(w.manager.cache.load(pod.UID).status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady })
			return statustest.Invalid(r, field.Invalid(field.NewPath("status", "conditions").Index(i), "", "not today"))
		})
		lose(w, pod)
		synctest.Wait()
		pending := w.manager.Pending()
		if len(pending) != 1 || !slices.Equal(pending[0].Refused, []string{"status.conditions[Ready]"}) || pending[0].Accepted == pending[0].Version {
			t.Errorf("pending is %+v, want the condition Ready, and that the version is not accepted", pending)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.manager.Flush(ctx); err == nil {
			t.Error("Flush calls delivered what the API does not have")
		}
		time.Sleep(10 * time.Minute)
		w.api.SetFault(nil)
		pass(healedWithin)
		w.wantReady(pod, false)
		w.wantNothingPending()
	})
}

// A server that is being started asks for long pauses. The first list is tried as often as a probe in any other pause.
func TestFirstList_IsTriedDuringALongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create("web")
		w.api.SetFault(func(_ context.Context, r statustest.Request) error { return statustest.Unavailable(r, 86400) })
		w.set(pod, running(pod, true))
		w.run()
		time.Sleep(time.Minute)
		w.api.SetFault(nil)
		pass(probeEvery)
		w.wantReady(pod, true)
	})
}
