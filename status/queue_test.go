package status

import (
	"cmp"
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

// model is a dumb queue: a list that is searched each time.
type model struct {
	jobs           map[types.UID]*modelJob
	passed         [background + 1]int
	backgroundFrom time.Time
	asked          int
}

type modelJob struct {
	urgency   urgency
	since     time.Time
	asked     int
	notBefore time.Time
	tried     time.Time
	released  time.Time
	server    bool
	flying    bool
	expedited bool
	dirty     *modelJob // what was asked for during the flight
}

func (m *model) add(uid types.UID, u urgency, now time.Time) {
	m.asked++
	fresh := &modelJob{urgency: u, since: now, asked: m.asked}
	j := m.jobs[uid]
	switch {
	case j == nil:
		m.jobs[uid] = fresh
	case j.flying && j.dirty == nil:
		j.dirty = fresh
	case j.flying:
		j.dirty.urgency = min(j.dirty.urgency, u)
	default:
		j.urgency = min(j.urgency, u)
		if now.Before(j.since) {
			j.since = now
		}
	}
}

func (m *model) expedite(uid types.UID, u urgency, now time.Time) {
	m.add(uid, u, now)
	j := m.jobs[uid]
	j.expedited = j.flying
	j.notBefore = time.Time{}
}

// ready lists the pods of a class that could be taken, the first one first.
func (m *model) ready(u urgency, now time.Time) []types.UID {
	var uids []types.UID
	for uid, j := range m.jobs {
		if !j.flying && !j.notBefore.After(now) && j.urgency == u && !(u == background && now.Before(m.backgroundFrom)) {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(uids, func(a, b types.UID) int {
		return cmp.Or(m.jobs[a].since.Compare(m.jobs[b].since), cmp.Compare(m.jobs[a].asked, m.jobs[b].asked))
	})
	return uids
}

// take gives the turn by the rule alone: of four turns of a class and those below, one is theirs.
func (m *model) take(now time.Time) (types.UID, bool) {
	var work [background + 1][]types.UID
	last := withdrawal
	for u := range work {
		if work[u] = m.ready(urgency(u), now); len(work[u]) > 0 {
			last = urgency(u)
		}
	}
	for u := withdrawal; u <= last; u++ {
		if len(work[u]) == 0 || u < last && m.passed[u] >= 3 {
			continue
		}
		for above := withdrawal; above < u; above++ {
			m.passed[above] = 0
		}
		if m.passed[u]++; u == last {
			m.passed[u] = 0
		}
		j := m.jobs[work[u][0]]
		j.flying, j.expedited, j.server = true, false, false
		return work[u][0], true
	}
	return "", false
}

func (m *model) done(uid types.UID) {
	j := m.jobs[uid]
	delete(m.jobs, uid)
	if j.dirty != nil {
		j.dirty.released = j.released
		m.jobs[uid] = j.dirty
	}
}

func (m *model) retry(uid types.UID, u urgency, now, at time.Time, server bool) {
	j := m.jobs[uid]
	if j.expedited {
		m.done(uid)
		return
	}
	if j.dirty != nil {
		u, j.asked = min(u, j.dirty.urgency), j.dirty.asked
	}
	*j = modelJob{urgency: u, since: at, asked: j.asked, notBefore: at, tried: now, released: j.released, server: server}
}

func (m *model) hurry(uid types.UID, now time.Time) {
	j := m.jobs[uid]
	at := j.tried.Add(time.Second)
	if at.Before(now) {
		at = now
	}
	if !j.flying && j.server && j.notBefore.After(at) {
		j.notBefore, j.since = at, at
	}
}

func (m *model) release(now time.Time, over time.Duration) {
	var uids []types.UID
	for uid, j := range m.jobs {
		if !j.flying && j.server && !j.notBefore.IsZero() && (j.released.IsZero() || now.Sub(j.released) >= 30*time.Second) {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(uids, func(a, b types.UID) int {
		x, y := m.jobs[a], m.jobs[b]
		return cmp.Or(cmp.Compare(x.urgency, y.urgency), x.notBefore.Compare(y.notBefore), cmp.Compare(x.asked, y.asked))
	})
	for i, uid := range uids {
		j := m.jobs[uid]
		j.released = now
		if at := now.Add(over * time.Duration(i) / time.Duration(len(uids))); at.Before(j.notBefore) {
			j.notBefore, j.since = at, at
		}
	}
}

func (m *model) flying() []types.UID {
	var uids []types.UID
	for uid, j := range m.jobs {
		if j.flying {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

func TestQueueAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, m := newQueue(), &model{jobs: map[types.UID]*modelJob{}}
		now := epoch
		draw := func(t *rapid.T) (types.UID, urgency) {
			return rapid.SampledFrom([]types.UID{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "uid"),
				rapid.SampledFrom([]urgency{withdrawal, start, normal, background}).Draw(t, "urgency")
		}
		flying := func(t *rapid.T) types.UID {
			uids := m.flying()
			if len(uids) == 0 {
				t.Skip("nothing in flight")
			}
			return rapid.SampledFrom(uids).Draw(t, "flight")
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				uid, u := draw(t)
				q.add(uid, u, now)
				m.add(uid, u, now)
			},
			"expedite": func(t *rapid.T) {
				uid, u := draw(t)
				q.expedite(uid, u, now)
				m.expedite(uid, u, now)
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
				q.promote(now) // as the owner does: what is ready stays so
				for _, j := range m.jobs {
					if !j.notBefore.After(now) {
						j.notBefore = time.Time{}
					}
				}
			},
			"take": func(t *rapid.T) {
				want, wantOK := m.take(now)
				if got, ok := takeNext(q, now); got != want || ok != wantOK {
					t.Fatalf("took %q, the model takes %q", got, want)
				}
			},
			"done": func(t *rapid.T) {
				uid := flying(t)
				q.done(uid)
				m.done(uid)
			},
			"retry": func(t *rapid.T) {
				uid := flying(t)
				_, u := draw(t)
				at := now.Add(time.Duration(rapid.IntRange(1, 30000).Draw(t, "ms")) * time.Millisecond)
				server := rapid.Bool().Draw(t, "server")
				q.retry(uid, u, now, at, server)
				m.retry(uid, u, now, at, server)
			},
			"hurry": func(t *rapid.T) {
				uid, _ := draw(t)
				if m.jobs[uid] == nil {
					t.Skip("idle")
				}
				q.hurry(uid, now)
				m.hurry(uid, now)
			},
			"release": func(*rapid.T) {
				q.release(now, recoverySpread)
				m.release(now, recoverySpread)
			},
			"hold background": func(t *rapid.T) {
				at := now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
				q.backgroundFrom, m.backgroundFrom = at, at
			},
			"": func(t *rapid.T) {
				if len(q.jobs) != len(m.jobs) {
					t.Fatalf("the queue holds %d jobs, the model %d", len(q.jobs), len(m.jobs))
				}
				q.promote(now)
				for uid, j := range m.jobs {
					if got := q.jobs[uid]; got.inFlight != j.flying || !j.flying && (got.urgency != j.urgency || !got.notBefore.Equal(j.notBefore) && j.notBefore.After(now)) {
						t.Fatalf("pod %s is %+v, in the model %+v", uid, got, j)
					}
				}
			},
		})
	})
}

func TestBudgetNeverExceedsRateAndBurst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		qps, burst := rapid.Float64Range(0.5, 100).Draw(t, "qps"), rapid.IntRange(1, 20).Draw(t, "burst")
		b := newBudget(qps, burst, epoch)
		now, taken := epoch, 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "ms")) * time.Millisecond)
			if b.take(now, true) {
				taken++
			} else if at := b.when(now, true); !at.After(now) {
				t.Fatalf("there is no token at %v, but when says %v", now, at)
			} else if b.take(at, true); b.tokens < 0 {
				t.Fatalf("the bucket is overdrawn: %v", b.tokens)
			} else {
				now, taken = at, taken+1
			}
			if limit := float64(burst) + now.Sub(epoch).Seconds()*qps + 0.01; float64(taken) > limit {
				t.Fatalf("%d tokens in %v at %v qps, burst %d", taken, now.Sub(epoch), qps, burst)
			}
		}
	})
}

func TestBudgetCharge(t *testing.T) {
	b := newBudget(1, 1, epoch)
	if !b.take(epoch, true) {
		t.Fatal("a full bucket has no token")
	}
	b.charge(0) // no request was made: the token is back
	if !b.take(epoch, true) {
		t.Error("the token of a turn without a request was not given back")
	}
	b.charge(2) // one token paid for two requests
	if got, want := b.when(epoch, true), after(2*time.Second); got.Before(want) {
		t.Errorf("after two requests for one token the next is at %v, want not before %v", got, want)
	}
}
