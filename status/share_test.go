package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/statustest"
)

// byPrefix is the share of a pod named SHARE-NUMBER.
func byPrefix(uid types.UID) string {
	name, _, _ := strings.Cut(string(uid), "-")
	return name
}

func sharedQueue() *queue {
	q := newQueue()
	q.shareBy(byPrefix)
	return q
}

func TestSharesHaveTheirTurnsOneAfterTheOther(t *testing.T) {
	q := sharedQueue()
	for i := range 6 {
		q.add(types.UID(fmt.Sprint("busy-", i)), start, after(0))
	}
	q.add("a-0", start, after(time.Hour))
	q.add("b-0", start, after(time.Hour)) // both later than all of busy
	want := []types.UID{"busy-0", "a-0", "b-0", "busy-1", "busy-2", "busy-3", "busy-4", "busy-5"}
	if got := order(q, after(2*time.Hour)); !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

func TestShareThatComesLateNeitherWaitsNorMakesUp(t *testing.T) {
	q := sharedQueue()
	for i := range 4 {
		q.add(types.UID(fmt.Sprint("busy-", i)), start, after(0))
	}
	var got []types.UID
	for range 2 {
		uid, _ := takeNext(q, after(0))
		q.done(uid)
		got = append(got, uid)
	}
	for i := range 4 {
		q.add(types.UID(fmt.Sprint("late-", i)), start, after(time.Second))
	}
	got = append(got, order(q, after(time.Second))...)
	want := []types.UID{"busy-0", "busy-1", "late-0", "busy-2", "late-1", "busy-3", "late-2", "late-3"}
	if !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

func TestWithdrawalOfAnyShareGoesFirst(t *testing.T) {
	q := sharedQueue()
	for i := range 3 {
		q.add(types.UID(fmt.Sprint("a-", i)), start, after(0))
		q.add(types.UID(fmt.Sprint("b-", i)), start, after(0))
	}
	q.add("a-2", withdrawal, after(time.Second))
	if uid, _ := takeNext(q, after(time.Second)); uid != "a-2" {
		t.Errorf("%s is first, want a-2, which loses readiness", uid)
	}
}

// Whatever is asked of a queue with shares, no pod is lost or has two turns, and no share has more than it may.
func TestQueueWithShares_LosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := sharedQueue()
		wanted := map[types.UID]bool{}
		inFlight := map[types.UID]*job{}
		allowed := rapid.IntRange(1, 6).Draw(t, "allowed")
		now := after(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				uid := types.UID(fmt.Sprintf("%s-%d", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "share"), rapid.IntRange(0, 5).Draw(t, "pod")))
				q.add(uid, urgency(rapid.IntRange(0, 3).Draw(t, "class")), now)
				wanted[uid] = true
			case 2:
				q.promote(now)
				q.park(allowed)
				if u, _, ok := q.turn(now); ok {
					j := q.take(u, now)
					if inFlight[j.uid] != nil {
						t.Fatalf("%s has two turns", j.uid)
					}
					if j.share.full(allowed) {
						t.Fatalf("%s is served although its share has %d turns in progress, %d of them slow", j.uid, j.share.inFlight, j.share.slow)
					}
					j.began()
					inFlight[j.uid] = j
					delete(wanted, j.uid)
				}
			case 3:
				if len(inFlight) > 0 {
					uid := slices.Min(slices.Collect(maps.Keys(inFlight)))
					q.ended(inFlight[uid].share, false, true)
					if rapid.Bool().Draw(t, "failed") {
						wanted[uid] = true
						q.retry(uid, normal, now, now.Add(time.Second), false)
					} else {
						q.done(uid)
					}
					delete(inFlight, uid)
				}
			case 4:
				now = now.Add(time.Second)
			}
		}
		for uid, j := range inFlight {
			q.ended(j.share, false, true)
			q.done(uid)
		}
		now = now.Add(time.Hour)
		for {
			q.promote(now)
			q.park(100)
			u, _, ok := q.turn(now)
			if !ok {
				break
			}
			j := q.take(u, now)
			delete(wanted, j.uid)
			j.began()
			q.ended(j.share, false, true)
			q.done(j.uid)
		}
		if len(wanted) > 0 || len(q.jobs) > 0 || len(q.shares.named) > 0 {
			t.Fatalf("left: wanted %v, %d jobs, %d shares", wanted, len(q.jobs), len(q.shares.named))
		}
	})
}

// A node of which every request hangs delays the pods of no other node, and one that has much to send delays no other either.
func TestHungShareDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) {
			o.Share = func(pod *v1.Pod) string { return byPrefix(types.UID(pod.Name)) }
		})
		var hung []*v1.Pod
		for i := range 200 {
			hung = append(hung, w.create(fmt.Sprint("hung-", i)))
		}
		var healthy []*v1.Pod
		for i := range 20 {
			healthy = append(healthy, w.create(fmt.Sprintf("n%d-0", i)))
		}
		w.run()
		w.api.SetLatency(5 * time.Millisecond)
		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if strings.HasPrefix(r.Name, "ns/hung-") {
				return statustest.ErrHang
			}
			return nil
		})
		for _, pod := range hung {
			w.set(pod, running(pod, true))
		}
		time.Sleep(100 * time.Millisecond) // as many hang by now as may
		begin := time.Now()
		for range 6 { // for three minutes: until requests have hung, and after
			for _, ready := range []bool{true, false} {
				for _, pod := range healthy {
					w.set(pod, running(pod, ready))
				}
				pass(time.Second)
				for _, pod := range healthy {
					if got := isReady(&w.api.Pod(pod).Status); got != ready {
						t.Fatalf("%s is ready=%v in the API a second after its report, want %v although another node has hung for %v", pod.Name, got, ready, time.Since(begin))
					}
				}
			}
			time.Sleep(28 * time.Second)
		}
		w.api.SetFault(nil)
		pass(3 * time.Minute)
		w.wantNothingPending()
	})
}
