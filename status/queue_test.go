package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return epoch.Add(d) }

// takeNext takes the pod whose turn it is.
func takeNext(q *queue, now time.Time) (types.UID, bool) {
	u, _, ok := q.turn(now)
	if !ok {
		return "", false
	}
	return q.take(u, now).uid, true
}

// order takes pods until there is none to take.
func order(q *queue, now time.Time) []types.UID {
	var uids []types.UID
	for {
		uid, ok := takeNext(q, now)
		if !ok {
			return uids
		}
		uids = append(uids, uid)
		q.done(uid)
	}
}

func TestQueueServesTheMostUrgentClassFirst(t *testing.T) {
	q := newQueue()
	q.add("reconcile", background, after(0))
	q.add("labels", normal, after(0))
	q.add("starting", start, after(time.Second))
	q.add("losing", withdrawal, after(time.Hour)) // however late
	want := []types.UID{"losing", "starting", "labels", "reconcile"}
	if got := order(q, after(2*time.Hour)); !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

func TestQueueLeavesAQuarterOfTheTurnsToLessUrgentClasses(t *testing.T) {
	q := newQueue()
	for i := range 20 {
		q.add(types.UID(fmt.Sprint("losing-", i)), withdrawal, after(0))
		q.add(types.UID(fmt.Sprint("starting-", i)), start, after(0))
		q.add(types.UID(fmt.Sprint("reconcile-", i)), background, after(0))
	}
	var classes strings.Builder
	for _, uid := range order(q, after(0)) {
		classes.WriteByte(uid[0])
	}
	if got, want := classes.String(), "lllslllslllslllrlllslllslls"; !strings.HasPrefix(got, want) {
		t.Errorf("the order of classes is %s, want %s", got, want)
	}
}

// The bounds that the comment of queue states, for random arrivals.
func TestQueueServesEachClassWithinItsBound(t *testing.T) {
	bound := func(u urgency, ahead int) int {
		n := ahead + 1
		withSiblings := n + (n+share-2)/(share-1) // 4n/3, rounded up
		switch u {
		case withdrawal:
			return withSiblings
		case start:
			return share * withSiblings
		case normal:
			return share * share * withSiblings
		default:
			return share * share * share * n
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue()
		type arrival struct{ turn, ahead int }
		arrived := map[types.UID]arrival{}
		now, turns, served := epoch, 0, map[urgency]int{}
		weights := rapid.SliceOfN(rapid.SampledFrom([]urgency{withdrawal, start, normal, background}), 1, 8).Draw(t, "mix")
		arrive := func(i int) {
			u := rapid.SampledFrom(weights).Draw(t, "class")
			uid := types.UID(fmt.Sprint(i))
			arrived[uid] = arrival{turn: turns, ahead: q.ready[u].Len()}
			q.add(uid, u, now)
		}
		serve := func() {
			u, _, ok := q.turn(now)
			if !ok {
				return
			}
			turns++
			j := q.take(u, now)
			served[u]++
			a := arrived[j.uid]
			if waited := turns - a.turn; waited > bound(u, a.ahead) {
				t.Fatalf("a %s with %d ahead of it was served in turn %d, want %d at the latest", u, a.ahead, waited, bound(u, a.ahead))
			}
			q.done(j.uid)
		}
		for i := range rapid.IntRange(1, 400).Draw(t, "steps") {
			now = now.Add(time.Millisecond)
			for k := range rapid.IntRange(0, 3).Draw(t, "arrivals") {
				arrive(4*i + k)
			}
			for range rapid.IntRange(0, 3).Draw(t, "turns") {
				serve()
			}
		}
		for len(q.jobs) > 0 {
			serve()
		}
	})
}

func TestQueueServesAClassInOrderOfArrival(t *testing.T) {
	q := newQueue()
	var want []types.UID
	for i := range 50 {
		uid := types.UID(fmt.Sprint("pod-", i))
		q.add(uid, normal, epoch)
		want = append(want, uid)
	}
	if got := order(q, epoch); !slices.Equal(got, want) {
		t.Errorf("order is %v, want that of arrival", got)
	}
}

func TestQueueKeepsTheMoreUrgentClassAndTheEarlierTime(t *testing.T) {
	q := newQueue()
	q.add("a", normal, after(0))
	q.add("b", start, after(0))
	q.add("a", withdrawal, after(time.Millisecond)) // overtakes
	q.add("b", background, after(time.Millisecond)) // does not fall back
	q.add("c", normal, after(0))
	want := []types.UID{"a", "b", "c"}
	if got := order(q, after(time.Second)); !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

func TestQueueGivesAPodOneTurnAtATime(t *testing.T) {
	q := newQueue()
	q.add("a", normal, epoch)
	if uid, ok := takeNext(q, epoch); !ok || uid != "a" {
		t.Fatalf("took %q, %v", uid, ok)
	}
	q.add("a", normal, epoch)
	if uid, ok := takeNext(q, epoch); ok {
		t.Errorf("took %q while it is in flight", uid)
	}
	q.done("a")
	if uid, ok := takeNext(q, epoch); !ok || uid != "a" {
		t.Errorf("after the flight took %q, %v; want a again, since it was asked for meanwhile", uid, ok)
	}
	q.done("a")
	if len(q.jobs) != 0 {
		t.Errorf("an idle queue still holds %d jobs", len(q.jobs))
	}
}

func TestQueueBackoff(t *testing.T) {
	q := newQueue()
	q.add("a", withdrawal, epoch)
	takeNext(q, epoch)
	q.retry("a", withdrawal, epoch, after(time.Second), false)
	q.add("a", withdrawal, after(100*time.Millisecond)) // a change does not end the back-off
	if uid, ok := takeNext(q, after(999*time.Millisecond)); ok {
		t.Errorf("took %q before its back-off was over", uid)
	}
	if got := q.next(after(100 * time.Millisecond)); !got.Equal(after(time.Second)) {
		t.Errorf("next is %v, want the end of the back-off", got)
	}
	q.expedite("a", background, after(500*time.Millisecond)) // news does
	if uid, ok := takeNext(q, after(500*time.Millisecond)); !ok || uid != "a" {
		t.Errorf("took %q, %v after news; want a", uid, ok)
	}
}

func TestQueueNewsInFlightEndsTheBackoffToCome(t *testing.T) {
	q := newQueue()
	q.add("a", normal, epoch)
	takeNext(q, epoch)
	q.expedite("a", background, epoch)
	q.retry("a", normal, epoch, after(time.Hour), false)
	if _, ok := takeNext(q, after(time.Second)); !ok {
		t.Error("the pod waits an hour although there was news of it during its turn")
	}
}

func TestQueueHoldsBackgroundBack(t *testing.T) {
	q := newQueue()
	q.add("reconcile", background, after(-time.Minute))
	q.add("labels", normal, after(0))
	now, from := after(0), after(5*time.Second)
	q.backgroundFrom = from
	if uid, ok := takeNext(q, now); !ok || uid != "labels" {
		t.Errorf("took %q, %v; want labels", uid, ok)
	}
	if uid, ok := takeNext(q, now); ok {
		t.Errorf("took %q while background work is held back", uid)
	}
	if got := q.next(now); !got.Equal(from) {
		t.Errorf("next is %v, want %v", got, from)
	}
	q.add("reconcile", withdrawal, now) // is background work no longer
	if uid, ok := takeNext(q, now); !ok || uid != "reconcile" {
		t.Errorf("took %q, %v; want reconcile, which has become a withdrawal", uid, ok)
	}
}

func TestQueueReleasesThePodsThatWaitForTheServer(t *testing.T) {
	q := newQueue()
	back := func(uid types.UID, u urgency, server bool) {
		q.add(uid, u, epoch)
		takeNext(q, epoch)
		q.retry(uid, u, epoch, after(time.Hour), server)
	}
	back("starting", start, true)
	back("losing", withdrawal, true)
	back("refused", withdrawal, false)
	now := after(time.Minute)
	q.release(now, 2*time.Second)
	if got := order(q, now); !slices.Equal(got, []types.UID{"losing"}) {
		t.Errorf("at once took %v, want the withdrawal", got)
	}
	if got := order(q, now.Add(2*time.Second)); !slices.Equal(got, []types.UID{"starting"}) {
		t.Errorf("two seconds later took %v, want the starting pod, and not the refused one", got)
	}
	// A pod that fails by its own fault is not tried with each success of others.
	q.add("own", start, now)
	takeNext(q, now)
	for range 3 {
		q.retry("own", start, now, now.Add(time.Hour), true)
		q.release(now, 0)
		now = now.Add(time.Second)
		takeNext(q, now)
	}
	if q.jobs["own"].inFlight {
		t.Error("the pod was released twice within 30 s")
	}
}
