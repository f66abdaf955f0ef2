package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/view"
)

// core evaluates rules and advances alerts. It has no goroutine and no clock: time is an argument, and
// it collects lines to write, notifications and actions for the engine. One goroutine at a time uses it.
type core struct {
	options  *Options
	source   view.Sources // the sources of facts
	set      *ruleset.Set
	inForce  map[expr.Scope]ruleList
	subjects map[types.UID]*subject
	schedule schedule
	alerts   map[identity]*tracked // pending and firing
	ended    map[slot]*tracked     // resolved, and not yet delivered by all outputs
	recent   []alert.Alert         // resolved, for a while
	silences map[string]*silence
	faults   map[string]*ruleFault
	// notLoaded is why the rules in force are not those of the files, empty if they are.
	notLoaded string
	// counts are the pods by state.
	counts map[explain.State]int
	memory nodeMemory
	// began is when the core began, seen the number of the newest record that the core before it had
	// looked at; zero: there was none.
	began  time.Time
	seen   uint64
	newest uint64

	effects
	metrics *metrics
}

// effects are what the engine has to do after a turn, in this order.
type effects struct {
	unsaved    map[slot]*tracked  // to be written; nil: to be deleted
	lines      []line             // to be written as well: silences, the log of the node
	deliveries []delivery         // to be passed on
	changed    map[types.UID]bool // the subjects whose alerts have changed
	version    uint64             // of the list of alerts
}

// slot is where an alert is stored. An ended and undelivered alert has a slot of its own, since another
// alert of the same rule and subject may follow it.
type slot struct {
	identity
	ended int64 // when it began, if it is over
}

func (a *tracked) slot() slot { return slotOf(a.identity(), a.State, a.Since) }

func slotOf(id identity, state alert.State, since time.Time) slot {
	if state == alert.Resolved {
		return slot{id, since.UnixNano()}
	}
	return slot{identity: id}
}

// save has an alert written.
func (c *core) save(a *tracked) { c.unsaved[a.slot()] = a }

// delivery is an alert to be passed on to outputs or to the actor.
type delivery struct {
	id     identity
	alert  alert.Alert
	rule   *ruleset.Rule
	at     time.Time
	done   []string // the outputs that had it before the restart
	action *ruleset.Action
}

// ruleList has the rules of a scope: rules about facts, and rules about transitions.
type ruleList struct{ facts, events []*ruleset.Rule }

// subject is a pod, or the node with its kubelet.
type subject struct {
	uid    types.UID
	state  explain.State // as counted
	seen   uint64        // the newest record that was looked at
	alerts []*tracked
	// rests are the rules that took too long for it, and until when they are not evaluated.
	rests map[string]time.Time
	look  time.Time
	place int
}

func newCore(options *Options, now time.Time) *core {
	c := &core{
		options: options, source: view.Sources{Source: options.Source, Audit: options.Audit, Guard: options.Guard, Location: time.UTC},
		subjects: map[types.UID]*subject{}, alerts: map[identity]*tracked{}, ended: map[slot]*tracked{}, silences: map[string]*silence{},
		faults: map[string]*ruleFault{}, counts: map[explain.State]int{}, began: now,
		effects: effects{unsaved: map[slot]*tracked{}, changed: map[types.UID]bool{}},
		metrics: newMetrics(options.Registerer),
	}
	c.use(options.Set)
	return c
}

// use makes a set the one in force.
func (c *core) use(set *ruleset.Set) {
	c.set, c.inForce = set, map[expr.Scope]ruleList{}
	for _, r := range set.Rules() {
		list := c.inForce[r.Scope]
		if r.Program.Event {
			list.events = append(list.events, r)
		} else {
			list.facts = append(list.facts, r)
		}
		c.inForce[r.Scope] = list
	}
}

func (c *core) subject(uid types.UID) *subject {
	sub, ok := c.subjects[uid]
	if !ok {
		sub = &subject{uid: uid, seen: c.seen}
		c.subjects[uid] = sub
	}
	return sub
}

// evaluate looks at one subject: a pod, or with an empty UID the node and its kubelet.
func (c *core) evaluate(ctx context.Context, uid types.UID, now time.Time) {
	c.metrics.turns.Inc()
	if uid == "" {
		c.evaluateNode(ctx, now)
		return
	}
	detail, ok := view.Describe(c.source, uid)
	sub := c.subject(uid)
	if !ok {
		c.gone(sub, now)
		return
	}
	c.count(sub, detail.State, now)
	t := &turn{core: c, ctx: ctx, sub: sub, Moment: expr.Moment{Now: now, Records: detail.History}}
	t.SetPod(detail)
	t.name.namespace, t.name.name = detail.Namespace, detail.Name
	for _, r := range c.inForce[expr.ScopePod].facts {
		t.apply(r, "")
	}
	for i, name := range t.Containers() {
		t.InContainer(i, func() {
			for _, r := range c.inForce[expr.ScopeContainer].facts {
				t.apply(r, name)
			}
		})
	}
	t.events(detail.History)
	t.finish()
}

// count keeps the numbers of pods by state. A rule of the node may depend on them.
func (c *core) count(sub *subject, state explain.State, now time.Time) {
	if sub.state == state {
		return
	}
	if sub.state != "" {
		c.counts[sub.state]--
	}
	if state != "" {
		c.counts[state]++
	}
	sub.state = state
	if c.needsCounts() {
		c.sooner(c.subject(""), now.Add(countsDelay))
	}
}

// countsDelay is how long changes of the numbers of pods are collected.
const countsDelay = time.Second

func (c *core) needsCounts() bool {
	return slices.ContainsFunc(c.inForce[expr.ScopeNode].facts, func(r *ruleset.Rule) bool { return r.Program.Counts }) ||
		slices.ContainsFunc(c.inForce[expr.ScopeKubelet].facts, func(r *ruleset.Rule) bool { return r.Program.Counts })
}

// sooner has a subject looked at by an instant.
func (c *core) sooner(sub *subject, at time.Time) {
	if sub.look.IsZero() || at.Before(sub.look) {
		c.schedule.set(sub, at)
	}
}

// gone handles the removal of a pod from the node: all its alerts end.
func (c *core) gone(sub *subject, now time.Time) {
	c.count(sub, "", now)
	var look time.Time
	for _, a := range slices.Clone(sub.alerts) {
		if a.rule == nil {
			c.abandon(a, now)
			continue
		}
		look = earliest(look, c.step(a, false, now, nil))
	}
	if len(sub.alerts) == 0 {
		look = time.Time{}
		delete(c.subjects, sub.uid)
	}
	c.schedule.set(sub, look)
}

// due returns a subject whose time has come; false if no subject is due.
func (c *core) due(now time.Time) (types.UID, bool) {
	at := c.schedule.next()
	if at.IsZero() || at.After(now) {
		return "", false
	}
	return c.schedule.items[0].uid, true
}

// earliest returns the earlier of two instants; zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// reload replaces the rules. An alert of a rule with the same name, scope, expression, severity and labels goes on; the
// others are over.
func (c *core) reload(set *ruleset.Set, now time.Time) {
	c.use(set)
	clear(c.faults)
	for _, a := range c.sorted() {
		if a.rule == ruleFails {
			continue
		}
		if r := set.Rule(a.Rule); r != nil && same(r, a.rule) {
			a.rule = r
			continue
		}
		c.abandon(a, now)
	}
}

// same reports whether a rule makes the same alerts as another, so that they go on: for as long as an alert lasts,
// its labels stay.
func same(r, other *ruleset.Rule) bool {
	return other != nil && r.Name == other.Name && r.Scope == other.Scope && r.Expr == other.Expr && r.Severity == other.Severity && maps.Equal(r.Labels, other.Labels)
}

// abandon ends an alert whose rule is not in force any more.
func (c *core) abandon(a *tracked, now time.Time) {
	if a.State == alert.Firing {
		c.enter(a, alert.Resolved, now, nil)
	} else {
		c.enter(a, "", now, nil)
	}
}

// sorted are the alerts in the order in which they began.
func (c *core) sorted() []*tracked {
	list := make([]*tracked, 0, len(c.alerts))
	for _, a := range c.alerts {
		list = append(list, a)
	}
	slices.SortFunc(list, compareAlerts)
	return list
}

// clockStepped handles a jump of the clock: durations since an instant do not get longer, and
// subjects that wait for an instant are evaluated now.
func (c *core) clockStepped(by time.Duration, now time.Time) {
	c.noteStep(by, now)
	for _, a := range c.alerts {
		a.shift(by)
		c.save(a)
	}
	for _, sub := range slices.Clone(c.schedule.items) {
		c.schedule.set(sub, now)
	}
}

// noteStep remembers the jump, which is a fact of the node.
func (c *core) noteStep(by time.Duration, now time.Time) {
	c.memory.step, c.memory.stepped = by, now
	c.schedule.set(c.subject(""), now)
}
