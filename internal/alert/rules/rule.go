package rules

import (
	"fmt"
	"time"
)

// Scope is what a rule is about. One alert stands for one subject: a pod, a container, the node or
// the kubelet.
type Scope string

// The scopes.
const (
	ScopePod       Scope = "pod"
	ScopeContainer Scope = "container"
	ScopeNode      Scope = "node"
	ScopeKubelet   Scope = "kubelet"
)

// The apiVersion and kind of a file of rules.
const (
	APIVersion = "statusd/v1alpha1"
	Kind       = "Rules"
)

// Rule is what must not happen, and what to do if it does. It is not changed after [Load].
type Rule struct {
	// Name of the rule, unique in a [Set], and of its group.
	Name  string
	Group string
	Scope Scope
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

	program *program
}

// ActionKind is what can be done about an alert.
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

// Action is what is done when an alert fires. All actions are off unless the process allows them by name.
type Action struct {
	Kind ActionKind `yaml:"action"`
	// DryRun: it is only recorded what would be done.
	DryRun bool `yaml:"dryRun,omitempty"`
	// Budget is how often it is done in Per, for all alerts of the rule; zero: what the process allows.
	Budget int           `yaml:"budget,omitempty"`
	Per    time.Duration `yaml:"per,omitempty"`
	// CoolDown is how long the same subject is left alone afterwards.
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

// Rule returns a rule by its name, nil if there is none.
func (s *Set) Rule(name string) *Rule {
	for _, r := range s.Rules() {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Warnings are what is allowed and still worth a look, in the order of the rules.
func (s *Set) Warnings() []Mistake {
	var list []Mistake
	for _, r := range s.Rules() {
		if r.program.loose {
			list = append(list, Mistake{File: r.File, Line: r.Line, Column: 1, Message: fmt.Sprintf(
				"rule %s uses time so that it is not known when its truth changes: it is evaluated every %v; compare durationIn, age or now with what does not depend on time", r.Name, relook)})
		}
	}
	return list
}
