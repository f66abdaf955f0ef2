package rules

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/interpreter"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/view"
)

// turn is one look at a subject: all rules of its scopes, at one moment.
type turn struct {
	*core
	moment
	ctx  context.Context
	sub  *subject
	name struct{ namespace, name string }
}

// apply evaluates a rule about facts and moves its alert.
func (t *turn) apply(r *Rule, container string) {
	if until, resting := t.resting(r, t.now); resting {
		t.look(until)
		return
	}
	isTrue, err := r.program.isTrue(t.ctx, &t.moment)
	if err != nil {
		t.fault(r, err, t.now)
		return
	}
	a := t.alerts[identity{r.Name, t.sub.uid, container}]
	if a == nil {
		if !isTrue {
			return
		}
		if a = t.begin(r, container); a == nil {
			return
		}
	}
	t.until(t.step(a, isTrue, t.now, &t.moment))
	if isTrue && a.State != "" {
		t.renew(a, r)
	}
}

// renew brings the annotations of an alert up to date: what it says is of now, not of when it began. It announces nothing, since
// time alone may change them.
func (t *turn) renew(a *tracked, r *Rule) {
	if annotations := t.annotations(r); !maps.Equal(annotations, a.Annotations) {
		a.Annotations = annotations
		t.version++
	}
	if a.State == alert.Firing && a.Silenced == "" && len(a.done) == len(t.options.Outputs) && len(a.done) > 0 && t.now.Sub(a.renewed) >= renewEvery && !maps.Equal(a.passed, a.Annotations) {
		a.renewed = t.now
		t.pass(a, t.now) // again, so that those who repeat it repeat what is true
	}
}

// renewEvery is how often outputs are given what has changed of an alert that fires.
const renewEvery = time.Minute

func (t *turn) until(at time.Time) {
	if !at.IsZero() {
		t.look(at)
	}
}

// events evaluates the rules about transitions for each record since the last look.
func (t *turn) events(records []view.Record) {
	first := len(records)
	for first > 0 && t.isNew(&records[first-1]) {
		first--
	}
	for i := first; i < len(records); i++ {
		t.event(&records[i])
		t.sub.seen = max(t.sub.seen, records[i].Seq)
		t.newest = max(t.newest, records[i].Seq)
	}
}

// isNew reports whether a record was not yet looked at. Before the first core there was none, so that what
// happened before it began is old.
func (t *turn) isNew(r *view.Record) bool {
	if t.sub.seen == 0 {
		return !r.Observed.Before(t.began)
	}
	return r.Seq > t.sub.seen
}

func (t *turn) event(r *view.Record) {
	t.change = r
	if t.pod != nil {
		for _, rule := range t.inForce[ScopePod].events {
			t.happens(rule, "")
		}
		facts := t.pod.v.(*podFacts)
		for i := range facts.containers {
			if facts.containers[i].Name != r.Container {
				continue
			}
			t.container = &object{typ: containerType, at: &t.moment, v: &facts.containers[i]}
			for _, rule := range t.inForce[ScopeContainer].events {
				t.happens(rule, r.Container)
			}
			t.container = nil
		}
	} else {
		for _, rule := range slices.Concat(t.inForce[ScopeNode].events, t.inForce[ScopeKubelet].events) {
			t.happens(rule, "")
		}
	}
	t.change = nil
}

// happens evaluates a rule about a transition.
func (t *turn) happens(r *Rule, container string) {
	if _, resting := t.resting(r, t.now); resting {
		return
	}
	next := t.next
	isTrue, err := r.program.isTrue(t.ctx, &t.moment)
	t.next = next // it is about an instant: time alone does not change it
	if err != nil {
		t.fault(r, err, t.now)
		return
	}
	if !isTrue {
		return
	}
	a := t.alerts[identity{r.Name, t.sub.uid, container}]
	if a == nil {
		if a = t.begin(r, container); a == nil {
			return
		}
	}
	if a.State == alert.Pending {
		t.enter(a, alert.Firing, t.now, &t.moment)
	}
	a.happened(t.now)
	t.save(a)
}

// finish ends the alerts of which there is no subject any more, and schedules the next look.
func (t *turn) finish() {
	for _, a := range slices.Clone(t.sub.alerts) {
		switch {
		case a.rule == nil:
			t.abandon(a, t.now)
		case a.rule.program == nil || a.rule.program.event || a.Container != "" && !t.has(a.Container):
			t.until(t.step(a, false, t.now, nil))
		}
	}
	t.schedule.set(t.sub, t.next)
}

func (t *turn) has(container string) bool {
	if t.pod == nil {
		return true
	}
	return slices.ContainsFunc(t.pod.v.(*podFacts).containers, func(c containerFacts) bool { return c.Name == container })
}

const (
	// restFor is how long a rule that took too long for a subject is not evaluated for it.
	restFor = time.Minute
	// maxFault is how long the text of a fault may be.
	maxFault = 512
)

// ruleFault is what is wrong with a rule that cannot be evaluated.
type ruleFault struct {
	message string
	at      time.Time
}

// fault takes that a rule could not be evaluated for the subject. Its alerts stay as they are. One that took too long rests, for this
// subject alone: what one pod makes expensive must not keep the rule from the others.
func (t *turn) fault(r *Rule, err error, now time.Time) {
	f := &ruleFault{message: bounded(err.Error(), maxFault), at: now}
	reason := "error"
	if isOverrun(err) {
		reason = "overrun"
		if t.sub.rests == nil {
			t.sub.rests = map[string]time.Time{}
		}
		t.sub.rests[r.Name] = now.Add(restFor)
	}
	t.faults[r.Name] = f
	t.metrics.faults.WithLabelValues(r.Name, reason).Inc()
	t.reportFault(r, f, now)
}

// isCostLimit reports whether an evaluation was ended because it cost too much.
func isCostLimit(err error) bool { return strings.Contains(err.Error(), "cost limit exceeded") }

func isOverrun(err error) bool {
	return errors.Is(err, interpreter.InterruptError{}) || isCostLimit(err) || errors.Is(err, context.DeadlineExceeded)
}

// resting reports whether a rule is not evaluated for the subject because it took too long, and until when.
func (t *turn) resting(r *Rule, now time.Time) (time.Time, bool) {
	until, ok := t.sub.rests[r.Name]
	if !ok {
		return time.Time{}, false
	}
	if !now.Before(until) {
		delete(t.sub.rests, r.Name)
		return time.Time{}, false
	}
	return until, true
}
