package status

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

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

// promote makes the pods ready whose wait is over. They wait for the server no longer.
func (m *model) promote(now time.Time) {
	for _, j := range m.jobs {
		if !j.notBefore.After(now) {
			j.notBefore = time.Time{}
		}
	}
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
				m.promote(now)
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
				m.promote(now) // a wait that was shortened to end now is over
				for uid, j := range m.jobs {
					if got := q.jobs[uid]; got.inFlight != j.flying || !j.flying && (got.urgency != j.urgency || !got.notBefore.Equal(j.notBefore) && j.notBefore.After(now)) {
						t.Fatalf("pod %s is %+v, in the model %+v", uid, got, j)
					}
				}
			},
		})
	})
}
