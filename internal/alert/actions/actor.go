package actions

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/kubeoutputs"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
)

// The results of actions.
const (
	Done    = "done"
	DryRun  = "dry-run"
	Refused = "refused"
	Failed  = "failed"
	Undone  = "undone"
)

// ReasonAction is the reason of the events of actions.
const ReasonAction = "AlertAction"

// Do does one action and returns a description of the result. After an error of type [LaterError] the
// action can be tried again, after any other error it cannot.
type Do func(ctx context.Context, r *engine.ActionRequest) (message string, err error)

// LaterError is the error of an action that may succeed later, as an eviction that a disruption budget forbids now.
type LaterError struct{ Err error }

func (e *LaterError) Error() string { return e.Err.Error() }

func (e *LaterError) Unwrap() error { return e.Err }

// RefusedError is the error of an action that cannot be done to this subject.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Marks sets and takes back taints and cordons. See [NodeMarks].
type Marks interface {
	// Set reports whether the Node has the mark because of this call.
	Set(ctx context.Context, mark string) (changed bool, err error)
	Unset(ctx context.Context, mark string) error
}

// Options configure an actor.
type Options struct {
	// Policy has the allowed actions. Empty: no action is allowed.
	Policy Policy
	// Node is the name of this node.
	Node string
	// File is where the ledger is kept. Empty: budgets start full after a restart.
	File string
	// Do has the actions by kind. For a missing kind, Why gives the reason.
	Do  map[ruleset.ActionKind]Do
	Why map[ruleset.ActionKind]string
	// Marks are for taints and cordons; nil: they cannot be done.
	Marks Marks
	// Event receives an event for each action; nil: no events. It must not block.
	Event kubeoutputs.Record
	// Record keeps each result in the history, also of an alert that is over; nil: it is not kept.
	Record     func(alert.Alert, alert.Action)
	Registerer prometheus.Registerer // nil: no metrics
	Logger     *slog.Logger          // nil: discards
}

const (
	// patience is how long an action is tried that may succeed later.
	patience = 10 * time.Minute
	// timeout bounds one try.
	timeout = 2 * time.Minute
	// maxWaiting bounds the requests that wait for a decision.
	maxWaiting = 1000
)

// retries spaces the tries of actions that may succeed later.
var retries = backoff.Schedule{First: 5 * time.Second, Limit: time.Minute}

// Actor decides about actions and does them. It implements [engine.Actor] and [engine.Output].
type Actor struct {
	options Options
	log     *slog.Logger
	results *prometheus.CounterVec
	woken   chan struct{}
	tries   chan try // results of what runs

	mu       sync.Mutex // guards the received requests and notifications below
	requests []engine.ActionRequest
	over     []engine.Notification

	// What follows belongs to Run.
	ledger *Ledger
	tasks  []*task
	undos  []*undo
	// waiting are requests whose budget is used up, the oldest first.
	waiting []*waiter
}

// waiter is a request that is decided again when its budget allows it, as long as its alert fires.
type waiter struct {
	request engine.ActionRequest
	next    time.Time
}

// task is an action that is in progress.
type task struct {
	request engine.ActionRequest
	began   time.Time
	attempt int
	next    time.Time // zero while it runs
}

// undo is a mark that is taken back.
type undo struct {
	mark    string
	alert   alert.Alert
	done    []func()
	attempt int
	next    time.Time // zero while it runs
}

// try is the result of one try.
type try struct {
	task    *task
	undo    *undo
	message string
	changed bool // the action has set a mark on the Node
	err     error
}

// New makes an actor and reads its ledger. New starts nothing: see [Actor.Run].
func New(options Options) (*Actor, error) {
	if err := options.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("actions: %w", err)
	}
	options.Policy = options.Policy.complete()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Actor{options: options, log: options.Logger, woken: make(chan struct{}, 1), tries: make(chan try)}
	var err error
	if a.ledger, err = loadLedger(options.File); err != nil {
		a.log.Warn("ledger of actions not readable, budgets start full", "err", err)
	}
	a.results = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statusd_actions_total", Help: "Actions of rules, by kind and result.",
	}, []string{"action", "result"})
	for _, kind := range Kinds() {
		for _, result := range []string{Done, DryRun, Refused, Failed, Undone} {
			a.results.WithLabelValues(string(kind), result)
		}
	}
	if options.Registerer != nil {
		options.Registerer.MustRegister(a.results)
	}
	return a, nil
}

// Name is actions.
func (*Actor) Name() string { return "actions" }

// Act takes a request. Act never blocks.
func (a *Actor) Act(r engine.ActionRequest) {
	a.mu.Lock()
	a.requests = append(a.requests, r)
	a.mu.Unlock()
	wake.Up(a.woken)
}

// Notify receives the ends of alerts. Notify never blocks.
func (a *Actor) Notify(n engine.Notification) {
	if n.Alert.State != alert.Resolved {
		if n.Done != nil {
			n.Done()
		}
		return
	}
	a.mu.Lock()
	a.over = append(a.over, n)
	a.mu.Unlock()
	wake.Up(a.woken)
}

// Run decides and acts until ctx ends. Run may be called once.
func (a *Actor) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.release(alert.Alert{}, nil, time.Now()) // what an earlier process did not come to
	for {
		a.look(time.Now())
		a.start(ctx, &running, time.Now())
		timer := time.NewTimer(a.untilNext(time.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-a.woken:
		case <-timer.C:
		case t := <-a.tries:
			a.tried(t, time.Now())
		}
		timer.Stop()
	}
}

// look processes received requests and notifications.
func (a *Actor) look(now time.Time) {
	a.mu.Lock()
	requests, over := a.requests, a.over
	a.requests, a.over = nil, nil
	a.mu.Unlock()
	a.again(now)
	for i := range requests {
		if i >= maxWaiting {
			a.finish(&requests[i], Refused, "too many requests at once", now)
			continue
		}
		a.decide(requests[i], false, now)
	}
	for i := range over {
		a.end(over[i], now)
	}
}

// again decides about what waits for its budget.
func (a *Actor) again(now time.Time) {
	due := a.waiting
	a.waiting = nil
	for _, w := range due {
		if w.next.After(now) {
			a.waiting = append(a.waiting, w)
			continue
		}
		a.decide(w.request, true, now)
	}
}

// decide begins an action, or refuses it. An action whose budget is used up waits for the budget; again
// reports that it has waited.
func (a *Actor) decide(r engine.ActionRequest, again bool, now time.Time) {
	kind := r.Action.Kind
	mark, err := MarkOf(&r.Action)
	if err != nil {
		a.finish(&r, Refused, err.Error(), now)
		return
	}
	if a.joins(mark, &r.Action) {
		a.ledger.join(mark, r.Alert.Fingerprint, false)
		_ = a.save() // it is logged; the Node is what counts
		a.finish(&r, Done, "the node has it for another alert: "+mark, now)
		return
	}
	subject := SubjectOf(&r)
	a.ledger.settle(now)
	verdict := Decide(Request{Rule: r.Alert.Rule, Action: r.Action, Subject: subject}, a.ledger, a.options.Policy, now)
	if verdict.Refused == "" && !a.can(kind) {
		verdict.Refused = a.why(kind)
	}
	if verdict.Refused != "" && !verdict.Until.IsZero() && len(a.waiting) < maxWaiting {
		a.waiting = append(a.waiting, &waiter{request: r, next: verdict.Until})
		if !again {
			a.finish(&r, Refused, verdict.Refused+"; it is tried again at "+verdict.Until.UTC().Format(time.RFC3339)+" if the alert still fires", now)
		}
		return
	}
	if verdict.Refused != "" {
		a.finish(&r, Refused, verdict.Refused, now)
		return
	}
	a.ledger.begin(Entry{Rule: r.Alert.Rule, Kind: kind, Subject: subject, At: now, DryRun: verdict.DryRun, Busy: !verdict.DryRun},
		max(a.options.Policy[kind].Per, a.options.Policy[kind].CoolDown, r.Action.Per, r.Action.CoolDown))
	if err := a.save(); err != nil && !verdict.DryRun {
		// Without a saved ledger the budget would not hold over a restart.
		a.ledger.end(subject, kind, false)
		a.finish(&r, Refused, err.Error(), now)
		return
	}
	if verdict.DryRun {
		a.finish(&r, DryRun, "would have been done", now)
		return
	}
	a.tasks = append(a.tasks, &task{request: r, began: now, next: now})
}

// joins reports whether an action only adds an alert to those for which the Node has a mark.
func (a *Actor) joins(mark string, action *ruleset.Action) bool {
	limits, allowed := a.options.Policy[action.Kind]
	return mark != "" && allowed && !limits.DryRun && !action.DryRun && a.ledger.hold(mark) != nil
}

// can reports whether this process is able to do an action.
func (a *Actor) can(kind ruleset.ActionKind) bool {
	if kind == ruleset.ActionTaint || kind == ruleset.ActionCordon {
		return a.options.Marks != nil
	}
	return a.options.Do[kind] != nil
}

func (a *Actor) why(kind ruleset.ActionKind) string {
	if why := a.options.Why[kind]; why != "" {
		return why
	}
	return fmt.Sprintf("%s is not possible here", kind)
}

// end handles the end of an alert: its waiting actions are dropped, and its marks are removed.
func (a *Actor) end(n engine.Notification, now time.Time) {
	a.tasks = slices.DeleteFunc(a.tasks, func(t *task) bool {
		waits := t.request.Alert.Fingerprint == n.Alert.Fingerprint && !t.next.IsZero() && t.attempt > 0
		if waits {
			a.ledger.end(SubjectOf(&t.request), t.request.Action.Kind, false)
			a.finish(&t.request, Failed, "the alert was over before it was possible", now)
		}
		return waits
	})
	a.waiting = slices.DeleteFunc(a.waiting, func(w *waiter) bool { return w.request.Alert.Fingerprint == n.Alert.Fingerprint })
	wanted := a.ledger.wants(n.Alert.Fingerprint)
	a.ledger.leave(n.Alert.Fingerprint)
	undoing := a.release(n.Alert, n.Done, now)
	if wanted {
		_ = a.save() // it is logged; the Node is what counts
	}
	if !undoing && n.Done != nil {
		n.Done()
	}
}

// release removes the marks that no alert wants any more. release reports whether done will be called after
// that.
func (a *Actor) release(alert alert.Alert, done func(), now time.Time) (undoing bool) {
	for _, mark := range a.ledger.free() {
		if slices.ContainsFunc(a.undos, func(u *undo) bool { return u.mark == mark }) {
			continue
		}
		if h := a.ledger.hold(mark); !h.Ours || a.options.Marks == nil {
			a.ledger.drop(mark)
			continue
		}
		u := &undo{mark: mark, alert: alert, next: now}
		if done != nil && !undoing {
			u.done, undoing = append(u.done, done), true
		}
		a.undos = append(a.undos, u)
	}
	return undoing
}

// finish stores the result with the alert, and sends an Event if the action changed something.
func (a *Actor) finish(r *engine.ActionRequest, result, message string, now time.Time) {
	action := alert.Action{Action: string(r.Action.Kind), At: now, Result: result, Message: message}
	a.results.WithLabelValues(action.Action, result).Inc()
	level := slog.LevelInfo
	if result == Failed {
		level = slog.LevelWarn
	}
	a.log.Log(context.Background(), level, "action", "action", action.Action, "result", result, "rule", r.Alert.Rule, "pod", r.Alert.Namespace+"/"+r.Alert.Pod, "uid", r.Alert.UID, "message", message)
	if result != Refused {
		a.event(&r.Alert, action)
	}
	if r.Done != nil {
		r.Done(action)
	}
	if a.options.Record != nil {
		a.options.Record(r.Alert, action)
	}
}

func (a *Actor) event(alert *alert.Alert, action alert.Action) {
	if a.options.Event == nil {
		return
	}
	kind := v1.EventTypeNormal
	if action.Result == Failed {
		kind = v1.EventTypeWarning
	}
	a.options.Event(kubeoutputs.About(alert, a.options.Node), kind, ReasonAction,
		fmt.Sprintf("%s %s for rule %s (%s): %s", action.Action, action.Result, alert.Rule, alert.Annotations["summary"], action.Message))
}

// save keeps the ledger.
func (a *Actor) save() error {
	err := a.ledger.save(a.options.File)
	if err != nil {
		a.log.Error("ledger of actions not written", "err", err)
	}
	return err
}

// untilNext is how long nothing is due.
func (a *Actor) untilNext(now time.Time) time.Duration {
	wait := time.Hour
	for _, t := range a.tasks {
		if !t.next.IsZero() {
			wait = min(wait, t.next.Sub(now))
		}
	}
	for _, u := range a.undos {
		if !u.next.IsZero() {
			wait = min(wait, u.next.Sub(now))
		}
	}
	for _, w := range a.waiting {
		wait = min(wait, w.next.Sub(now))
	}
	return max(0, wait)
}
