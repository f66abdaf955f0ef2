package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/statustest"
)

// Answers that all pods get are no reason to let each wait by itself: an expired token, an authenticator
// that is down, roles that are applied again.
func TestRecoveryFromDenialsIsThatFromAnOutage(t *testing.T) {
	for name, fault := range map[string]statustest.Fault{
		"401": statustest.Always(apierrors.NewUnauthorized("token expired")),
		"403": func(_ context.Context, r statustest.Request) error {
			return statustest.Forbidden(r, "RBAC: clusterrole not found")
		},
		"403 for writes": func(_ context.Context, r statustest.Request) error {
			if r.Verb == "PATCH" {
				return statustest.Forbidden(r, "RBAC: clusterrole not found")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pods := readyPods(w, 100)
				w.api.SetFault(fault)
				for _, pod := range pods {
					lose(w, pod)
				}
				time.Sleep(10 * time.Minute)
				w.api.SetFault(nil)
				pass(probeEvery + recoverySpread + time.Second)
				late := 0
				for _, pod := range pods {
					if isReady(&w.api.Pod(pod).Status) {
						late++
					}
				}
				if late > 0 {
					t.Errorf("%d of %d pods are still ready in the API", late, len(pods))
				}
				w.wantNothingPending()
			})
		})
	}
}

// After an outage the server answers, but fails with the only pod that has something to send. The pod is no probe of the
// server any more, and its loss of readiness must not wait for its own back-off.
func TestPodThatAloneFailsAfterAnOutage_IsTriedEveryTenSeconds(t *testing.T) {
	for range 10 { // the back-off is random
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			pod := readyPods(w, 1)[0]
			w.api.SetFault(statustest.Always(statustest.ErrRefused))
			lose(w, pod)
			time.Sleep(2 * time.Minute)
			w.api.SetFault(statustest.Always(apierrors.NewInternalError(errors.New("boom"))))
			time.Sleep(3 * time.Minute)
			w.api.SetFault(nil)
			pass(graveWait + time.Second)
			if isReady(&w.api.Pod(pod).Status) {
				t.Errorf("still ready in the API: %+v", w.manager.Pending())
			}
		})
	}
}

// One pod that is denied is no reason to try it more often.
func TestDenialOfOnePodIsThatOfThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pods := readyPods(w, 2)
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.Verb == "PATCH" && r.PodName() == pods[0].Name {
				return statustest.Forbidden(r, "policy")
			}
			return nil
		})
		lose(w, pods[0])
		time.Sleep(10 * time.Minute)
		w.api.ForgetRequests()
		pass(10 * time.Minute)
		if got := w.api.Count("PATCH"); got > 10*60/8+1 {
			t.Errorf("%d tries in ten minutes, want one each 10 s: readiness differs", got)
		}
	})
}

// A pause that the server asks for with regard to some pods is none for the others.
func TestThrottlingOfSomePodsDelaysNoOther(t *testing.T) {
	for _, c := range []struct{ pods, seconds int }{{10, 30}, {50, 5}, {50, 30}} {
		t.Run(fmt.Sprint(c.pods, " pods, ", c.seconds, " s"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pods := readyPods(w, c.pods+20)
				throttled, others := pods[:c.pods], pods[c.pods:]
				names := map[string]bool{}
				for _, pod := range throttled {
					names[pod.Name] = true
				}
				w.api.SetFault(func(_ context.Context, r statustest.Request) error {
					if names[r.PodName()] && r.Verb == "PATCH" {
						return statustest.Throttled(c.seconds)
					}
					return nil
				})
				var total, worst time.Duration
				for round := range 100 {
					ready := round%2 == 1
					for i, pod := range throttled {
						if (i+round)%3 == 0 {
							must(w.manager.SetContainerReadiness(pod.UID, "process://"+string(pod.UID), ready))
						}
					}
					other := others[round%len(others)]
					ready = !isReady(&w.api.Pod(other).Status)
					time.Sleep(700 * time.Millisecond)
					began := time.Now()
					must(w.manager.SetContainerReadiness(other.UID, "process://"+string(other.UID), ready))
					for synctest.Wait(); isReady(&w.api.Pod(other).Status) != ready; synctest.Wait() {
						time.Sleep(100 * time.Millisecond)
					}
					total, worst = total+time.Since(began), max(worst, time.Since(began))
					time.Sleep(2 * time.Second)
				}
				if mean := total / 100; mean > 500*time.Millisecond || worst > probeEvery {
					t.Errorf("the others' changes took %v, the worst %v; want at most one probe", mean, worst)
				}
				requests := 0
				for _, r := range w.api.Requests() {
					if strings.HasPrefix(r.Name, "ns/pod-") && names[r.PodName()] {
						requests++
					}
				}
				t.Logf("%d pods, %d s: %v, worst %v, %d requests of throttled pods", c.pods, c.seconds, total/100, worst, requests)
			})
		})
	}
}
