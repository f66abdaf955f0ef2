package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/text"
)

// start starts the due tries.
func (a *Actor) start(ctx context.Context, running *sync.WaitGroup, now time.Time) {
	report := func(t try) {
		select {
		case a.tries <- t:
		case <-ctx.Done():
		}
	}
	for _, t := range a.tasks {
		if t.next.IsZero() || t.next.After(now) {
			continue
		}
		t.next = time.Time{}
		t.attempt++
		running.Go(func() { report(a.try(ctx, t)) })
	}
	a.undos = slices.DeleteFunc(a.undos, func(u *undo) bool { // another alert came before it was tried
		h := a.ledger.hold(u.mark)
		wanted := !u.next.IsZero() && h != nil && len(h.Alerts) > 0
		if wanted {
			u.finish()
		}
		return wanted
	})
	for _, u := range a.undos {
		if u.next.IsZero() || u.next.After(now) {
			continue
		}
		u.next = time.Time{}
		u.attempt++
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			report(try{undo: u, err: a.options.Marks.Unset(ctx, u.mark)})
		})
	}
}

func (a *Actor) try(ctx context.Context, t *task) try {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	kind := t.request.Action.Kind
	if kind == ruleset.ActionTaint || kind == ruleset.ActionCordon {
		mark, err := MarkOf(&t.request.Action)
		if err != nil {
			return try{task: t, err: err}
		}
		changed, err := a.options.Marks.Set(ctx, mark)
		message := mark
		if err == nil && !changed {
			message = "the node had it already: " + mark
		}
		return try{task: t, message: message, changed: changed, err: err}
	}
	request := t.request
	message, err := a.options.Do[kind](ctx, &request)
	return try{task: t, message: message, err: err}
}

// tried takes the result of a try.
func (a *Actor) tried(t try, now time.Time) {
	if t.undo != nil {
		a.undone(t.undo, t.err, now)
		return
	}
	r := &t.task.request
	if later := (*LaterError)(nil); errors.As(t.err, &later) {
		wait := retries.Random(t.task.attempt)
		if now.Add(wait).Sub(t.task.began) < patience {
			t.task.next = now.Add(wait)
			a.log.Debug("action not possible yet, will retry", "action", r.Action.Kind, "rule", r.Alert.Rule, "attempt", t.task.attempt, "err", t.err)
			return
		}
		t.err = fmt.Errorf("given up after %s: %w", text.Span(now.Sub(t.task.began)), t.err)
	}
	a.tasks = slices.DeleteFunc(a.tasks, func(other *task) bool { return other == t.task })
	a.ledger.end(SubjectOf(r), r.Action.Kind, t.err == nil)
	if mark, err := MarkOf(&r.Action); err == nil && mark != "" && t.err == nil {
		a.ledger.join(mark, r.Alert.Fingerprint, t.changed)
	}
	_ = a.save() // it is logged
	switch refused := (*RefusedError)(nil); {
	case t.err == nil:
		a.finish(r, Done, t.message, now)
	case errors.As(t.err, &refused):
		a.finish(r, Refused, refused.Reason, now)
	default:
		a.finish(r, Failed, t.err.Error(), now)
	}
}

// undone takes the result of a try to take a mark back. It is tried until it succeeds.
func (a *Actor) undone(u *undo, err error, now time.Time) {
	if err != nil {
		u.next = now.Add(retries.Random(u.attempt))
		a.log.Warn("removing taint or cordon failed, will retry", "mark", u.mark, "attempt", u.attempt, "err", err)
		return
	}
	a.undos = slices.DeleteFunc(a.undos, func(other *undo) bool { return other == u })
	if h := a.ledger.hold(u.mark); h != nil && len(h.Alerts) > 0 { // another alert came meanwhile
		a.tasksAgain(h, u, now)
	} else {
		a.ledger.drop(u.mark)
	}
	_ = a.save() // it is logged
	kind := kindOf(u.mark)
	action := alert.Action{Action: string(kind), At: now, Result: Undone, Message: "the alert is over: " + u.mark}
	a.results.WithLabelValues(string(kind), Undone).Inc()
	a.log.Info("action undone", "action", kind, "rule", u.alert.Rule, "mark", u.mark)
	a.event(&u.alert, action)
	if a.options.Record != nil {
		a.options.Record(u.alert, action)
	}
	u.finish()
}

func (u *undo) finish() {
	for _, done := range u.done {
		done()
	}
}

// tasksAgain sets a mark again if another alert asked for it while the mark was being removed.
func (a *Actor) tasksAgain(h *Hold, u *undo, now time.Time) {
	action := ruleset.Action{Kind: kindOf(u.mark), Taint: taintOf(u.mark)}
	alert := u.alert
	alert.Fingerprint = h.Alerts[0]
	a.tasks = append(a.tasks, &task{request: engine.ActionRequest{Alert: alert, Action: action, At: now, Node: a.options.Node}, began: now, next: now})
}
