//go:build !race

package status

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

// These tests simulate hours or draw many cases, which takes minutes under the race detector; the other tests of the
// package show it the same goroutines.

// Every pod of 500 flaps twice a second, which is more than the server can serve.
func TestFlappingPodsStarveNoStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		flapping := readyPods(w, 500)
		busyServer(w, 2, 5*time.Millisecond) // 400 requests a second
		end := time.Now().Add(20 * time.Second)
		var flaps sync.WaitGroup
		for i, pod := range flapping {
			flaps.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				for ready := false; time.Now().Before(end); ready = !ready {
					must(w.manager.SetContainerReadiness(pod.UID, "process://"+string(pod.UID), ready))
					time.Sleep(500 * time.Millisecond)
				}
			})
		}
		time.Sleep(2 * time.Second)
		reported := map[string]time.Time{}
		for i := range 100 {
			pod := w.create(fmt.Sprint("starting-", i))
			reported["ns/"+pod.Name] = time.Now()
			w.set(pod, running(pod, false))
		}
		flaps.Wait()
		pass(10 * time.Second)
		w.wantNothingPending()
		waits := sentAfter(w, reported)
		// A quarter of 400 turns a second is 100: a second for the 100 starts, and as long again
		// for what becomes ready meanwhile.
		if last := waits[len(waits)-1]; last > 3*time.Second {
			t.Errorf("the last start was sent after %v", last)
		}
	})
}

// A decider may end for one pod and go on for others, so that each pod has its own schedule.
func TestOverruledPods_AreTriedWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pods := readyPods(w, 50)
		w.api.SetWebhook(func(p *v1.Pod) { p.Status.Reason = "theirs" })
		for _, pod := range pods {
			status := running(pod, true)
			status.PodIP, status.PodIPs = "10.0.0.9", []v1.PodIP{{IP: "10.0.0.9"}}
			w.set(pod, status)
		}
		pass(2 * time.Hour)
		w.api.ForgetRequests()
		pass(time.Hour)
		if got := w.api.Count("PATCH"); got > 50*90 {
			t.Errorf("%d writes in an hour, want one each 40 to 50 s for each pod", got)
		}
		w.api.SetWebhook(nil)
		pass(time.Minute)
		for _, pod := range pods {
			if got := w.api.Pod(pod).Status.Reason; got != "" {
				t.Fatalf("a minute after the webhook the API has reason %q of %s", got, pod.Name)
			}
		}
		w.wantNothingPending()
	})
}
