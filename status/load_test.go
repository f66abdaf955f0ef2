package status

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/statustest"
)

// busyServer serves requests with so many processors, each of which takes between half and
// one and a half times the given time for one.
func busyServer(w *world, cores int, service time.Duration) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	seats := make(chan struct{}, cores)
	w.api.SetFault(func(context.Context, statustest.Request) error {
		mu.Lock()
		takes := time.Duration((0.5 + random.Float64()) * float64(service))
		mu.Unlock()
		seats <- struct{}{}
		time.Sleep(takes)
		<-seats
		return nil
	})
}

// sentAfter returns how long after its report each pod's first request was sent.
func sentAfter(w *world, reported map[string]time.Time) []time.Duration {
	var waits []time.Duration
	seen := map[string]bool{}
	for _, s := range w.api.Requests() {
		if at, ok := reported[s.Name]; ok && s.Verb == "PATCH" && !seen[s.Name] && !s.At.Before(at) {
			seen[s.Name] = true
			waits = append(waits, s.At.Sub(at))
		}
	}
	if len(waits) != len(reported) {
		w.Fatalf("%d of %d changes were sent", len(waits), len(reported))
	}
	slices.Sort(waits)
	return waits
}

// Withdrawals at random times, over a whole burst of starts: none waits for a busy slot.
func TestWithdrawalsInABurstDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		serving := readyPods(w, 100)
		busyServer(w, 2, 5*time.Millisecond)
		for i := range 2000 { // five seconds of work
			pod := w.create(fmt.Sprint("starting-", i))
			w.set(pod, running(pod, false))
		}
		random := rand.New(rand.NewPCG(3, 4))
		reported := map[string]time.Time{}
		for _, pod := range serving {
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
			reported["ns/"+pod.Name] = time.Now()
			lose(w, pod)
		}
		pass(time.Minute)
		w.wantNothingPending()
		waits := sentAfter(w, reported)
		if p99 := waits[98]; p99 > 5*time.Millisecond {
			t.Errorf("the 99th percentile of the waits is %v, want at most one service time; all: %v", p99, waits)
		}
	})
}

func TestWithdrawalsHaveAReserveOfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.QPS, o.Burst = 10, 20 })
		serving := readyPods(w, 2)
		for i := range 100 {
			pod := w.create(fmt.Sprint("starting-", i))
			w.set(pod, running(pod, false))
		}
		synctest.Wait()
		if got := w.api.Count("PATCH"); got != 18 {
			t.Errorf("%d starts were sent at once, want 18 of 20 tokens", got)
		}
		reported := map[string]time.Time{}
		for _, pod := range serving {
			reported["ns/"+pod.Name] = time.Now()
			lose(w, pod)
		}
		synctest.Wait()
		if waits := sentAfter(w, reported); waits[1] != 0 {
			t.Errorf("withdrawals waited %v for a token, although two are kept for them", waits)
		}
	})
}

// Withdrawals without end take neither all tokens nor all slots.
func TestWithdrawalsLeaveTokensToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.QPS, o.Burst = 10, 20 })
		serving := readyPods(w, 200)
		for _, pod := range serving { // 20 s of work
			lose(w, pod)
		}
		synctest.Wait()
		pod := w.create("starting")
		reported := map[string]time.Time{"ns/starting": time.Now()}
		w.set(pod, running(pod, false))
		pass(time.Minute)
		if waits := sentAfter(w, reported); waits[0] > 500*time.Millisecond {
			t.Errorf("the start waited %v, want at most four tokens at 10 a second", waits[0])
		}
	})
}

// What changes while the server is busy goes out together; an idle engine sends at once.
func TestChangesUnderLoadGoOutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run()
		busyServer(w, 2, 5*time.Millisecond)
		var pods []*v1.Pod
		for i := range 400 { // a second of work
			pods = append(pods, w.create(fmt.Sprint("pod-", i)))
		}
		for _, ready := range []bool{false, true} {
			for _, pod := range pods {
				w.set(pod, running(pod, ready))
			}
		}
		pass(time.Minute)
		w.wantNothingPending()
		if got := w.api.Count("PATCH"); got > 440 {
			t.Errorf("%d patches for 400 pods that started and became ready at once, want little more than one each", got)
		}
		w.api.ForgetRequests()
		w.set(pods[0], running(pods[0], false))
		w.wantLog("an idle engine", "PATCH ns/pod-0")
	})
}
