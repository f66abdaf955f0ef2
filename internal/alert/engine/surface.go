package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/internal/wake"
)

var _ view.AlertSource = (*Engine)(nil)

// later changes the core from any goroutine. The goroutine of Run writes and passes on what follows.
func (e *Engine) later(change func(*core)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e.core)
	wake.Up(e.arrived)
}

// patience is how long a caller waits for a hanging disk. The requested change holds until a restart anyway.
const patience = 5 * time.Second

// lasting is like later, but returns once the change is in the file: a crash after the answer does not undo it.
func (e *Engine) lasting(change func(*core)) {
	written := make(chan struct{})
	e.later(func(c *core) {
		change(c)
		if !e.runs {
			close(written)
			return
		}
		e.waited = append(e.waited, written)
	})
	select {
	case <-written:
	case <-time.After(patience):
	}
}

// Reload replaces the rules. Alerts of a rule with the same name, scope, expression, severity and labels go on;
// alerts of other rules are resolved.
func (e *Engine) Reload(set *ruleset.Set) {
	now, _ := e.clock()
	e.later(func(c *core) { c.reload(set, now); c.notLoaded = "" })
	e.loaded(set)
	e.queueAll(nil)
}

// ReloadWith replaces the rules by the rules that load returns. If load fails, the rules in force stay, and
// the metric of the last reload shows the failure.
func (e *Engine) ReloadWith(load func() (*ruleset.Set, error)) error {
	set, err := load()
	if err != nil {
		e.core.metrics.reloaded.Set(0)
		e.later(func(c *core) { c.notLoaded = err.Error() })
		e.log.Error("rules not reloaded, the rules in force stay", "err", err)
		return fmt.Errorf("rules: %w", err)
	}
	e.Reload(set)
	return nil
}

// Alerts returns the pending and firing alerts, and the alerts resolved in the last minutes. The
// list is not changed afterwards.
func (e *Engine) Alerts() []alert.Alert {
	now, _ := e.clock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.as != e.core.version {
		e.as = e.core.version
		e.listed = make([]alert.Alert, 0, len(e.core.alerts)+len(e.core.recent))
		for _, a := range e.core.sorted() {
			e.listed = append(e.listed, a.clone())
		}
		e.listed = append(e.listed, e.core.recent...)
	}
	if old := func(a alert.Alert) bool { return a.Resolved != nil && now.Sub(*a.Resolved) > recentFor }; slices.ContainsFunc(e.listed, old) {
		e.listed = slices.DeleteFunc(slices.Clone(e.listed), old)
	}
	return e.listed
}

// Silences returns the silences that have not ended.
func (e *Engine) Silences() []alert.Silence {
	now, _ := e.clock()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.core.listSilences(now)
}

// Silence stores a silence, and replaces the one with its ID if it has one.
func (e *Engine) Silence(s alert.Silence) (stored alert.Silence, err error) {
	now, _ := e.clock()
	e.lasting(func(c *core) { stored, err = c.addSilence(s, now) })
	return stored, err
}

// Expire ends a silence. If no silence has this ID the error is [queryapi.ErrNoSilence].
func (e *Engine) Expire(id string) error {
	now, _ := e.clock()
	found := false
	e.lasting(func(c *core) { found = c.expire(id, now) })
	if !found {
		return alert.ErrNoSilence
	}
	return nil
}

// Fault is a rule that cannot be evaluated.
type Fault struct {
	Rule    string    `json:"rule"`
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

// Faults returns the rules whose evaluation has failed in the last minutes, in the order of the
// rules.
func (e *Engine) Faults() []Fault {
	now, _ := e.clock()
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []Fault
	for _, r := range e.core.set.Rules() {
		if f, ok := e.core.faults[r.Name]; ok && now.Sub(f.at) < ruleFails.KeepFiringFor {
			list = append(list, Fault{Rule: r.Name, At: f.at, Message: f.message})
		}
	}
	return list
}

// Troubled is an [Output] that can report why alerts do not reach their receiver.
type Troubled interface {
	// Trouble is a clause, empty if nothing does.
	Trouble() string
}

// Problems returns the problems of alerting itself, as clauses: without them a reader could take silence for
// health.
func (e *Engine) Problems() []string {
	e.mu.Lock()
	notLoaded := e.core.notLoaded
	e.mu.Unlock()
	var list []string
	if notLoaded != "" {
		first, _, _ := strings.Cut(notLoaded, "\n")
		list = append(list, "the files of alert rules have a mistake, earlier rules are in force: "+text.Cut(first, maxFault))
	}
	for _, f := range e.Faults() {
		list = append(list, "alert rule "+f.Rule+" cannot be evaluated: "+f.Message)
	}
	for _, o := range e.options.Outputs {
		if t, ok := o.(Troubled); ok && t.Trouble() != "" {
			list = append(list, "alerts do not reach "+o.Name()+": "+t.Trouble())
		}
	}
	return list
}

// acted returns what takes the result of an action.
func (e *Engine) acted(id identity, since time.Time) func(alert.Action) {
	return func(result alert.Action) {
		var alert alert.Alert
		found := false
		e.later(func(c *core) { alert, found = c.acted(id, since, result) })
		if found && e.options.Record != nil {
			e.options.Record(alert, result)
		}
	}
}
