package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/internal/view"
)

// turn is one look at a subject: all rules of its scopes, at one moment.
type turn struct {
	*core
	expr.Moment
	ctx  context.Context
	sub  *subject
	name struct{ namespace, name string }
}

// apply evaluates a rule about facts and moves its alert.
func (t *turn) apply(r *ruleset.Rule, container string) {
	if until, resting := t.resting(r, t.Now); resting {
		t.Look(until)
		return
	}
	isTrue, err := r.Program.IsTrue(t.ctx, &t.Moment)
	if err != nil {
		t.fault(r, err, t.Now)
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
	t.until(t.step(a, isTrue, t.Now, &t.Moment))
	if isTrue && a.State != "" {
		t.renew(a, r)
	}
}

// renew updates the annotations of an alert: they describe the present, not the start of the alert. It notifies no output, since
// time alone may change them.
func (t *turn) renew(a *tracked, r *ruleset.Rule) {
	if annotations := t.annotations(r); !maps.Equal(annotations, a.Annotations) {
		a.Annotations = annotations
		t.version++
	}
	if a.State == alert.Firing && a.Silenced == "" && len(a.done) == len(t.options.Outputs) && len(a.done) > 0 && t.Now.Sub(a.renewed) >= renewEvery && !maps.Equal(a.passed, a.Annotations) {
		a.renewed = t.Now
		t.pass(a, t.Now) // again, so that repeating outputs repeat current annotations
	}
}

// renewEvery is the interval at which outputs get changed annotations of a firing alert.
const renewEvery = time.Minute

func (t *turn) until(at time.Time) {
	if !at.IsZero() {
		t.Look(at)
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

// isNew reports whether a record was not yet looked at. On the first start, records older than the start
// count as evaluated.
func (t *turn) isNew(r *view.Record) bool {
	if t.sub.seen == 0 {
		return !r.Observed.Before(t.began)
	}
	return r.Seq > t.sub.seen
}

func (t *turn) event(r *view.Record) {
	t.Change = r
	if t.IsPod() {
		for _, rule := range t.inForce[expr.ScopePod].events {
			t.happens(rule, "")
		}
		for i, name := range t.Containers() {
			if name != r.Container {
				continue
			}
			t.InContainer(i, func() {
				for _, rule := range t.inForce[expr.ScopeContainer].events {
					t.happens(rule, r.Container)
				}
			})
		}
	} else {
		for _, rule := range slices.Concat(t.inForce[expr.ScopeNode].events, t.inForce[expr.ScopeKubelet].events) {
			t.happens(rule, "")
		}
	}
	t.Change = nil
}

// happens evaluates a rule about a transition.
func (t *turn) happens(r *ruleset.Rule, container string) {
	if _, resting := t.resting(r, t.Now); resting {
		return
	}
	next := t.Next
	isTrue, err := r.Program.IsTrue(t.ctx, &t.Moment)
	t.Next = next // it is about an instant: time alone does not change it
	if err != nil {
		t.fault(r, err, t.Now)
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
		t.enter(a, alert.Firing, t.Now, &t.Moment)
	}
	a.happened(t.Now)
	t.save(a)
}

// finish ends the alerts whose subject is gone, and schedules the next evaluation.
func (t *turn) finish() {
	for _, a := range slices.Clone(t.sub.alerts) {
		switch {
		case a.rule == nil:
			t.abandon(a, t.Now)
		case a.rule.Program == nil || a.rule.Program.Event || a.Container != "" && !t.has(a.Container):
			t.until(t.step(a, false, t.Now, nil))
		}
	}
	t.schedule.set(t.sub, t.Next)
}

func (t *turn) has(container string) bool {
	return !t.IsPod() || slices.Contains(t.Containers(), container)
}

const (
	// restFor is how long a rule that took too long for a subject is not evaluated for it.
	restFor = time.Minute
	// maxFault is how long the text of a fault may be.
	maxFault = 512
)

// ruleFault is the error of a rule that cannot be evaluated.
type ruleFault struct {
	message string
	at      time.Time
}

// fault handles a failed evaluation of a rule for the subject. The alerts stay as they are. A rule that took too long rests, for this
// subject alone: one expensive pod must not keep the rule from the other pods.
func (t *turn) fault(r *ruleset.Rule, err error, now time.Time) {
	f := &ruleFault{message: text.Cut(err.Error(), maxFault), at: now}
	reason := "error"
	if expr.IsOverrun(err) {
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

// resting reports whether a rule is not evaluated for the subject because it took too long, and until when.
func (t *turn) resting(r *ruleset.Rule, now time.Time) (time.Time, bool) {
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
