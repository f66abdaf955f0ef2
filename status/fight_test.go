package status

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

// takeReadiness is what the node lifecycle controller does with the pods of a node whose lease
// is late.
func takeReadiness(pod *v1.Pod) {
	ready := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady)
	ready.Status, ready.Reason, ready.LastTransitionTime = v1.ConditionFalse, "NodeNotReady", metav1.Now()
}

// A node that flaps is no fight: readiness is given back within 10 s of each flap.
func TestReadinessIsBackAfterEachFlapOfTheNode(t *testing.T) {
	for _, every := range []time.Duration{5 * time.Second, 20 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				pod := readyPods(w, 1)[0]
				for flap := range 20 {
					w.api.SetFault(down)
					w.api.Change(pod, takeReadiness)
					time.Sleep(every / 5)
					w.api.SetFault(nil) // the first contact
					wrong := time.Now()
					for range 10 {
						synctest.Wait()
						if isReady(&w.api.Pod(pod).Status) {
							break
						}
						time.Sleep(time.Second)
					}
					synctest.Wait()
					if !isReady(&w.api.Pod(pod).Status) {
						t.Fatalf("flap %d: not ready in the API %v after the first contact: %+v", flap, time.Since(wrong), w.manager.Pending())
					}
					time.Sleep(every - time.Since(wrong) - every/5)
				}
			})
		})
	}
}

// Flaps that no request failed in: the node's lease was late, and the link is good.
func TestReadinessIsBackAtOnceIfFlapsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		for range 20 {
			w.api.Change(pod, takeReadiness)
			synctest.Wait()
			w.wantReady(pod, true)
			time.Sleep(time.Minute)
		}
		if fights := w.manager.Fights(); len(fights) > 0 {
			t.Errorf("fights: %+v", fights)
		}
		if got := w.api.Count("PATCH"); got != 20 {
			t.Errorf("%d writes for 20 flaps", got)
		}
	})
}

// In a true fight about readiness the API is right at least each 10 s, and Pending names it meanwhile.
func TestFightAboutReadinessIsPendingAndNeverWaitsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := readyPods(w, 1)[0]
		var controller sync.WaitGroup
		w.api.OnStore(func(p *v1.Pod) {
			w.deliver(p)
			if isReady(&p.Status) {
				controller.Go(func() { w.api.Change(pod, takeReadiness) })
			}
		})
		w.api.Change(pod, takeReadiness)
		pass(10 * time.Minute)
		w.api.ForgetRequests()
		pass(time.Minute)
		if got := w.api.Count("PATCH"); got < 6 || got > 8 {
			t.Errorf("%d writes in a minute, want one each 10 s", got)
		}
		if pending := w.manager.Pending(); len(pending) != 1 || pending[0].Reason != waitFight.String() || pending[0].NextTry.IsZero() {
			t.Errorf("pending is %+v, want the fight", pending)
		}
		if fights := w.manager.Fights(); len(fights) != 1 {
			t.Errorf("fights are %+v, want one", fights)
		}
		w.api.OnStore(w.deliver) // the controller gives in
		controller.Wait()
		pass(10 * time.Second)
		w.wantReady(pod, true)
		w.wantNothingPending()
		time.Sleep(fightMemory)
		if fights := w.manager.Fights(); len(fights) > 0 {
			t.Errorf("fights are %+v after the other writer gave in", fights)
		}
	})
}
