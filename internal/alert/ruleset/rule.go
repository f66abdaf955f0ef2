package ruleset

import (
	"fmt"
	"time"

	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/rulefile"
)

const (
	// Kind is the kind of a file of rules.
	Kind = "Rules"
	// FailingRule is the name of the alert about a rule that cannot be evaluated. No rule of a file may have it.
	FailingRule = "StatusdRuleFails"
)

// Rule is a condition that must not occur, with the actions if it does. It is not changed after
// [Load].
type Rule struct {
	// Name of the rule, unique in a [Set], and of its group.
	Name  string
	Group string
	Scope expr.Scope
	// Expr is the expression in CEL.
	Expr string
	// For is how long Expr must be true before the alert fires, KeepFiringFor how long the alert fires
	// after Expr has become false.
	For, KeepFiringFor time.Duration
	Severity           string
	// Labels and Annotations are texts with {{ expressions }} in them.
	Labels, Annotations map[string]string
	Actions             []Action
	// File and Line are where the rule stands.
	File string
	Line int

	// Program is the compiled rule; nil for [FailingRule], which has no expression.
	Program *Program
}

// ActionKind is a kind of action on an alert.
type ActionKind string

// The kinds of actions.
const (
	ActionEvict            ActionKind = "evict"            // through the Eviction API, so that disruption budgets hold
	ActionRestartContainer ActionKind = "restartContainer" // with its grace period and the back-off of the kubelet
	ActionTaint            ActionKind = "taint"
	ActionCordon           ActionKind = "cordon"
	ActionWebhook          ActionKind = "webhook"
	ActionRestartKubelet   ActionKind = "restartKubelet" // through the guard, with its budget
)

// Action is an action on a firing alert. All actions are off unless the process allows them by name.
type Action struct {
	Kind ActionKind `yaml:"action"`
	// DryRun: the action is only recorded, not done.
	DryRun bool `yaml:"dryRun,omitempty"`
	// Budget is the maximum number of actions in Per, for all alerts of the rule; zero: the limit of
	// the process.
	Budget int           `yaml:"budget,omitempty"`
	Per    time.Duration `yaml:"per,omitempty"`
	// CoolDown is the minimum time until the next action on the same subject.
	CoolDown time.Duration `yaml:"coolDown,omitempty"`
	// Taint is the taint to set, as key=value:effect, URL the webhook to call.
	Taint string `yaml:"taint,omitempty"`
	URL   string `yaml:"url,omitempty"`
}

// Set is the rules that are in force together. It is not changed after [Load].
type Set struct {
	rules []*Rule
}

// Rules returns the rules in the order of their files.
func (s *Set) Rules() []*Rule {
	if s == nil {
		return nil
	}
	return s.rules
}

// Rule returns the rule with this name, or nil.
func (s *Set) Rule(name string) *Rule {
	for _, r := range s.Rules() {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Warnings returns allowed but suspicious parts of the rules, in the order of the rules.
func (s *Set) Warnings() rulefile.Mistakes {
	var list rulefile.Mistakes
	for _, r := range s.Rules() {
		if r.Program.Loose {
			list = append(list, rulefile.Mistake{File: r.File, Line: r.Line, Column: 1, Message: fmt.Sprintf(
				"rule %s uses time so that it is not known when its truth changes: it is evaluated every %v; compare durationIn, age or now with what does not depend on time", r.Name, expr.Relook)})
		}
	}
	return list
}

// Over returns the rules of a base and of s. A rule of s replaces the base's rule of the same name.
func (s *Set) Over(base *Set) *Set {
	var all []*Rule
	for _, r := range base.Rules() {
		if s.Rule(r.Name) == nil {
			all = append(all, r)
		}
	}
	return &Set{rules: append(all, s.Rules()...)}
}
