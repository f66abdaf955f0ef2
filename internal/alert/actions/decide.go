package actions

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/text"
)

// Limits are the process's limits on one kind of action.
type Limits struct {
	// DryRun: the action is only recorded, not done.
	DryRun bool `yaml:"dryRun,omitempty"`
	// Budget is how often it is done in Per on this node, for all rules together; nil: the default, 0: never.
	Budget *int          `yaml:"budget,omitempty"`
	Per    time.Duration `yaml:"per,omitempty"`
	// CoolDown is the minimum time between an action and the next one on the same subject.
	CoolDown time.Duration `yaml:"coolDown,omitempty"`
	// SecretFile signs the calls of webhooks. Other actions have no secret.
	SecretFile string `yaml:"secretFile,omitempty"`
}

// Policy has the limits of the allowed actions, by kind. A missing kind is off.
type Policy map[ruleset.ActionKind]Limits

// defaults are the limits of allowed actions without explicit limits.
var defaults = map[ruleset.ActionKind]Limits{
	ruleset.ActionEvict:            {Budget: new(2), Per: 10 * time.Minute, CoolDown: 10 * time.Minute},
	ruleset.ActionRestartContainer: {Budget: new(5), Per: 10 * time.Minute, CoolDown: 10 * time.Minute},
	ruleset.ActionTaint:            {Budget: new(2), Per: time.Hour, CoolDown: 10 * time.Minute},
	ruleset.ActionCordon:           {Budget: new(2), Per: time.Hour, CoolDown: 10 * time.Minute},
	ruleset.ActionWebhook:          {Budget: new(20), Per: 10 * time.Minute, CoolDown: time.Minute},
	ruleset.ActionRestartKubelet:   {Budget: new(1), Per: time.Hour, CoolDown: time.Hour},
}

// Kinds returns all kinds of actions.
func Kinds() []ruleset.ActionKind {
	return []ruleset.ActionKind{ruleset.ActionEvict, ruleset.ActionRestartContainer, ruleset.ActionTaint, ruleset.ActionCordon, ruleset.ActionWebhook, ruleset.ActionRestartKubelet}
}

// complete fills in defaults.
func (p Policy) complete() Policy {
	full := Policy{}
	for kind, limits := range p {
		usual := defaults[kind]
		if limits.Budget == nil {
			limits.Budget = usual.Budget
		}
		if limits.Per == 0 {
			limits.Per = usual.Per
		}
		if limits.CoolDown == 0 {
			limits.CoolDown = usual.CoolDown
		}
		full[kind] = limits
	}
	return full
}

// Validate returns the problems of a policy.
func (p Policy) Validate() error {
	for kind, limits := range p {
		if !slices.Contains(Kinds(), kind) {
			return fmt.Errorf("%s: there is no such action; want one of %v", kind, Kinds())
		}
		if limits.Budget != nil && *limits.Budget < 0 || limits.Per < 0 || limits.CoolDown < 0 {
			return fmt.Errorf("%s: budget, per and coolDown must not be negative", kind)
		}
		if limits.SecretFile != "" && kind != ruleset.ActionWebhook {
			return fmt.Errorf("%s: secretFile is for webhook", kind)
		}
	}
	return nil
}

// Request has the facts of an action that the arbiter needs.
type Request struct {
	Rule    string
	Action  ruleset.Action
	Subject string // see [SubjectOf]
}

// SubjectOf returns the subject of an action: two actions on one subject never run at the same time.
// Actions on a pod or its containers have the pod as subject.
func SubjectOf(r *engine.ActionRequest) string {
	switch r.Action.Kind {
	case ruleset.ActionEvict, ruleset.ActionRestartContainer:
		return "pod/" + string(r.Alert.UID)
	case ruleset.ActionTaint, ruleset.ActionCordon:
		return "node"
	case ruleset.ActionRestartKubelet:
		return "kubelet"
	}
	return "alert/" + r.Alert.Fingerprint // a call changes nothing here
}

// Verdict is the arbiter's decision.
type Verdict struct {
	// Refused is why the action is not done, empty if it is.
	Refused string
	// DryRun: it is only recorded.
	DryRun bool
	// Until is when an action that is refused for its budget is possible again; zero: never.
	Until time.Time
}

// Decide reports whether an action is done now.
func Decide(r Request, l *Ledger, p Policy, now time.Time) Verdict {
	limits, allowed := p.complete()[r.Action.Kind]
	if !allowed {
		return Verdict{Refused: fmt.Sprintf("the action %s is off: rules.actions does not name it", r.Action.Kind)}
	}
	v := Verdict{DryRun: limits.DryRun || r.Action.DryRun}
	// What was only recorded is no reason not to do something.
	counts := func(e *Entry) bool { return v.DryRun || !e.DryRun }
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Subject != r.Subject || !counts(e) {
			continue
		}
		switch coolDown := max(limits.CoolDown, r.Action.CoolDown); {
		case e.Busy:
			v.Refused = fmt.Sprintf("%s for rule %s is in progress", e.Kind, e.Rule)
			return v
		case e.Kind == ruleset.ActionEvict && e.Done:
			v.Refused = fmt.Sprintf("the pod is evicted for rule %s", e.Rule)
			return v
		case now.Sub(e.At) < coolDown:
			v.Refused = fmt.Sprintf("cool-down until %s after %s for rule %s", e.At.Add(coolDown).UTC().Format(time.RFC3339), e.Kind, e.Rule)
			return v
		}
	}
	if *limits.Budget == 0 {
		v.Refused = fmt.Sprintf("the budget of %s is 0: rules.actions forbids it", r.Action.Kind)
		return v
	}
	if until := l.fits(now, limits.Per, *limits.Budget, func(e *Entry) bool { return counts(e) && e.Kind == r.Action.Kind }); !until.IsZero() {
		v.Refused, v.Until = fmt.Sprintf("the budget of %d in %s is used up", *limits.Budget, text.Span(limits.Per)), until
		return v
	}
	if r.Action.Budget > 0 {
		per := cmp.Or(r.Action.Per, limits.Per)
		if until := l.fits(now, per, r.Action.Budget, func(e *Entry) bool { return counts(e) && e.Kind == r.Action.Kind && e.Rule == r.Rule }); !until.IsZero() {
			v.Refused, v.Until = fmt.Sprintf("the budget of the rule, %d in %s, is used up", r.Action.Budget, text.Span(per)), until
		}
	}
	return v
}
