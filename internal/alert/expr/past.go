package expr

import (
	"strconv"
	"time"

	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/view"
)

// past is the history of one subject: a pod, one of its containers, or the node.
type past struct {
	at        *Moment
	container string // only records about this container; empty: all
}

// within calls count for each record within a duration until now, and schedules an evaluation for
// when the oldest counted record leaves the window.
func (p past) within(d time.Duration, count func(i int, r *view.Record, missing int) bool) {
	start := p.at.Now.Add(-d)
	var oldest time.Time
	for i := range p.at.Records {
		r := &p.at.Records[i]
		if p.container != "" && r.Container != p.container || !r.Observed.After(start) || r.Observed.After(p.at.Now) {
			continue
		}
		if count(i, r, p.missing(i, start)) && (oldest.IsZero() || r.Observed.Before(oldest)) {
			oldest = r.Observed
		}
	}
	if !oldest.IsZero() {
		p.at.Look(oldest.Add(d))
	}
	p.future()
}

// future notes when a record comes into effect that is dated after now, as by a clock that was set back.
func (p past) future() {
	for i := len(p.at.Records) - 1; i >= 0 && p.at.Records[i].Observed.After(p.at.Now); i-- {
		p.at.Look(p.at.Records[i].Observed)
	}
}

// missing counts the records that were dropped right before one, if they were within the window for sure:
// the record before them is.
func (p past) missing(i int, start time.Time) int {
	r := &p.at.Records[i]
	if r.Dropped == 0 {
		return 0
	}
	for j := i - 1; j >= 0; j-- {
		before := &p.at.Records[j]
		if before.Kind == r.Kind && before.Subject == r.Subject && before.Container == r.Container {
			if before.Observed.After(start) {
				return r.Dropped
			}
			return 0
		}
	}
	return 0
}

// changes counts the transitions within a duration.
func (p past) changes(d time.Duration) (n int64) {
	p.within(d, func(_ int, _ *view.Record, missing int) bool { n += 1 + int64(missing); return true })
	return n
}

// restarts counts the restarts of containers within a duration.
func (p past) restarts(d time.Duration) (n int64) {
	p.within(d, func(_ int, r *view.Record, missing int) bool {
		if r.Kind != history.KindRestart {
			return false
		}
		n += restarted(r) + int64(missing)
		return true
	})
	return n
}

// restarted is by how much a record raises the restart count.
func restarted(r *view.Record) int64 {
	from, _ := strconv.ParseInt(r.From, 10, 32)
	to, err := strconv.ParseInt(r.To, 10, 32)
	if err != nil || to <= from {
		return 0
	}
	return to - from
}

// flaps counts how often it became not ready within a duration after it had been ready.
func (p past) flaps(d time.Duration) (n int64) {
	p.within(d, func(_ int, r *view.Record, missing int) bool {
		if !p.unready(r) {
			return false
		}
		n += 1 + int64(missing)/2
		return true
	})
	return n
}

// unready reports whether a record is the loss of readiness of the subject.
func (p past) unready(r *view.Record) bool {
	switch r.Kind {
	case history.KindReady:
		return p.container != "" && r.From == "ready" && r.To == "not ready"
	case history.KindCondition, history.KindNode:
		return p.container == "" && r.Subject == "Ready" && r.From == "True" && r.To != "True"
	}
	return false
}

// ended counts the runs of containers that ended within a duration for a reason; empty: for any.
func (p past) ended(reason string, d time.Duration) (n int64) {
	over := map[int]bool{} // the restarts whose end has a record of its own
	open := map[string]bool{}
	for i := range p.at.Records {
		switch r := &p.at.Records[i]; r.Kind {
		case history.KindContainer:
			open[r.Container] = r.To == "terminated" || open[r.Container] && r.To == "waiting"
		case history.KindRestart:
			over[i], open[r.Container] = open[r.Container], false
		}
	}
	p.within(d, func(i int, r *view.Record, missing int) bool {
		isEnd := r.Kind == history.KindContainer && r.To == "terminated" || r.Kind == history.KindRestart && !over[i]
		if !isEnd || reason != "" && r.Reason != reason {
			return false
		}
		n += 1 + int64(missing)
		return true
	})
	return n
}

// matches reports whether a record is an entry into a state: a phase, a state or a reason of a container, or
// of the node.
func matches(r *view.Record, state string) bool {
	switch r.Kind {
	case history.KindPhase, history.KindContainer, history.KindNode:
		return r.To == state || r.Reason == state
	}
	return false
}

// was reports whether it was in a state at any time within a duration.
func (p past) was(state string, d time.Duration) bool {
	start, found := p.at.Now.Add(-d), false
	in := map[string]time.Time{} // by kind, subject and container: since when in the state
	for i := range p.at.Records {
		r := &p.at.Records[i]
		if p.container != "" && r.Container != p.container || r.Observed.After(p.at.Now) {
			continue
		}
		if r.Kind != history.KindPhase && r.Kind != history.KindContainer && r.Kind != history.KindNode {
			continue
		}
		key := string(r.Kind) + "\x00" + r.Subject + "\x00" + r.Container
		_, was := in[key]
		switch is := matches(r, state); {
		case is:
			in[key] = r.Observed
		case was:
			delete(in, key)
			if r.Observed.After(start) { // it left the state within the window
				found = true
				p.at.Look(r.Observed.Add(d))
			}
		}
	}
	p.future()
	return found || len(in) > 0
}

// entered returns the time at which the present state was entered, zero if the container is in
// another state.
func (p past) entered(state string) (at time.Time) {
	for i := len(p.at.Records) - 1; i >= 0; i-- {
		r := &p.at.Records[i]
		if r.Kind != history.KindContainer || r.Container != p.container {
			continue
		}
		if !matches(r, state) {
			break
		}
		at = r.Observed
	}
	return at
}

// phaseSince is when the pod came into a phase, zero if the history does not have it.
func (p past) phaseSince(phase string) (at time.Time) {
	for i := len(p.at.Records) - 1; i >= 0; i-- {
		if r := &p.at.Records[i]; r.Kind == history.KindPhase {
			if r.To != phase {
				break
			}
			at = r.Observed
		}
	}
	return at
}
