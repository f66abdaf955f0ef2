package status

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return epoch.Add(d) }

// order takes pods until there is none to take.
func order(q *queue, now time.Time) []types.UID {
	var uids []types.UID
	for {
		uid, ok := q.take(now, time.Time{})
		if !ok {
			return uids
		}
		uids = append(uids, uid)
		q.done(uid)
	}
}

func TestQueueServesByDeadline(t *testing.T) {
	q := newQueue()
	q.add("reconcile", background, after(0))
	q.add("labels", normal, after(0))
	q.add("starting", start, after(time.Second))
	q.add("losing", withdrawal, after(1400*time.Millisecond))
	want := []types.UID{"losing", "starting", "labels", "reconcile"}
	if got := order(q, after(2*time.Second)); !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

func TestQueueLetsNobodyStarve(t *testing.T) {
	q := newQueue()
	q.add("reconcile", background, after(0))
	for i := range 30 { // a withdrawal every half second, each served before the next comes
		now := after(time.Duration(i) * 500 * time.Millisecond)
		q.add(types.UID(fmt.Sprint("losing-", i)), withdrawal, now)
		uid, _ := q.take(now, time.Time{})
		q.done(uid)
		if uid == "reconcile" {
			if now.Before(after(10 * time.Second)) {
				t.Errorf("background work was served at %v, before its deadline and before a withdrawal", now)
			}
			return
		}
	}
	t.Error("background work was never served in 15 s of withdrawals")
}

func TestQueueServesEqualDeadlinesInOrderOfArrival(t *testing.T) {
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

func TestQueueKeepsTheEarlierDeadline(t *testing.T) {
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
	if uid, ok := q.take(epoch, time.Time{}); !ok || uid != "a" {
		t.Fatalf("took %q, %v", uid, ok)
	}
	q.add("a", normal, epoch)
	if uid, ok := q.take(epoch, time.Time{}); ok {
		t.Errorf("took %q while it is in flight", uid)
	}
	q.done("a")
	if uid, ok := q.take(epoch, time.Time{}); !ok || uid != "a" {
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
	q.take(epoch, time.Time{})
	q.retry("a", withdrawal, after(time.Second))
	q.add("a", withdrawal, after(100*time.Millisecond)) // a change does not end the backoff
	if uid, ok := q.take(after(999*time.Millisecond), time.Time{}); ok {
		t.Errorf("took %q before its backoff was over", uid)
	}
	if got := q.next(after(100 * time.Millisecond)); !got.Equal(after(time.Second)) {
		t.Errorf("next is %v, want the end of the backoff", got)
	}
	q.expedite("a", background, after(500*time.Millisecond)) // news does
	if uid, ok := q.take(after(500*time.Millisecond), time.Time{}); !ok || uid != "a" {
		t.Errorf("took %q, %v after news; want a", uid, ok)
	}
}

func TestQueueNewsInFlightEndsTheBackoffToCome(t *testing.T) {
	q := newQueue()
	q.add("a", normal, epoch)
	q.take(epoch, time.Time{})
	q.expedite("a", background, epoch)
	q.retry("a", normal, after(time.Hour))
	if _, ok := q.take(after(time.Second), time.Time{}); !ok {
		t.Error("the pod waits an hour although there was news of it during its turn")
	}
}

func TestQueueHoldsBackgroundBack(t *testing.T) {
	q := newQueue()
	q.add("reconcile", background, after(-time.Minute))
	q.add("labels", normal, after(0))
	now, from := after(0), after(5*time.Second)
	if uid, ok := q.take(now, from); !ok || uid != "labels" {
		t.Errorf("took %q, %v; want labels", uid, ok)
	}
	if uid, ok := q.take(now, from); ok {
		t.Errorf("took %q while background work is held back", uid)
	}
	if uid, ok := q.take(from, from); !ok || uid != "reconcile" {
		t.Errorf("took %q, %v; want reconcile", uid, ok)
	}
}

// A dumb model: a list that is searched for the smallest deadline each time.
func TestQueueAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue()
		type modelJob struct {
			deadline  time.Time
			asked     int
			notBefore time.Time
			flying    bool
			dirty     bool
			again     time.Time // deadline of the dirty request
		}
		model := map[types.UID]*modelJob{}
		now, asked := epoch, 0
		uids := rapid.SampledFrom([]types.UID{"a", "b", "c", "d", "e"})
		flying := func() []types.UID {
			var list []types.UID
			for uid, j := range model {
				if j.flying {
					list = append(list, uid)
				}
			}
			slices.Sort(list)
			return list
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				uid, u := uids.Draw(t, "uid"), rapid.SampledFrom([]urgency{withdrawal, start, normal, background}).Draw(t, "urgency")
				asked++
				deadline := now.Add(u.slack())
				q.add(uid, u, now)
				j := model[uid]
				switch {
				case j == nil:
					model[uid] = &modelJob{deadline: deadline, asked: asked}
				case j.flying && !j.dirty:
					j.dirty, j.again, j.asked = true, deadline, asked
				case j.flying:
					if deadline.Before(j.again) {
						j.again = deadline
					}
				case deadline.Before(j.deadline):
					j.deadline = deadline
				}
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"take": func(t *rapid.T) {
				var want types.UID
				for uid, j := range model {
					if j.flying || j.notBefore.After(now) {
						continue
					}
					best := model[want]
					if best == nil || j.deadline.Before(best.deadline) || j.deadline.Equal(best.deadline) && j.asked < best.asked {
						want = uid
					}
				}
				got, ok := q.take(now, time.Time{})
				if ok != (want != "") || got != want {
					t.Fatalf("took %q, the model takes %q", got, want)
				}
				if ok {
					model[want].flying = true
				}
			},
			"done": func(t *rapid.T) {
				candidates := flying()
				if len(candidates) == 0 {
					t.Skip("nothing in flight")
				}
				uid := rapid.SampledFrom(candidates).Draw(t, "uid")
				q.done(uid)
				if j := model[uid]; j.dirty {
					j.flying, j.dirty, j.deadline, j.notBefore = false, false, j.again, time.Time{}
				} else {
					delete(model, uid)
				}
			},
			"": func(t *rapid.T) {
				if len(q.jobs) != len(model) {
					t.Fatalf("the queue holds %d jobs, the model %d", len(q.jobs), len(model))
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
			if b.take(now) {
				taken++
			} else if at := b.when(now); !at.After(now) {
				t.Fatalf("there is no token at %v, but when says %v", now, at)
			} else if b.take(at); b.tokens < 0 {
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
	if !b.take(epoch) {
		t.Fatal("a full bucket has no token")
	}
	b.charge(0) // no request was made: the token is back
	if !b.take(epoch) {
		t.Error("the token of a turn without a request was not given back")
	}
	b.charge(2) // one token paid for two requests
	if got, want := b.when(epoch), after(2*time.Second); got.Before(want) {
		t.Errorf("after two requests for one token the next is at %v, want not before %v", got, want)
	}
}

func TestBackoffGrowsToItsLimit(t *testing.T) {
	b := backoff{first: time.Second, limit: time.Minute}
	for attempt := 1; attempt < 100; attempt++ {
		full := time.Minute
		if attempt <= 6 {
			full = time.Second << (attempt - 1)
		}
		if least, most := b.wait(attempt, 1), b.wait(attempt, 0); most != full || least != full*4/5 {
			t.Fatalf("attempt %d waits between %v and %v, want between %v and %v", attempt, least, most, full*4/5, full)
		}
	}
}
