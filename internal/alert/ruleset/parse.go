package ruleset

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/google/cel-go/cel"
	yaml "go.yaml.in/yaml/v3"

	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/text"
)

const (
	maxLabels      = 32
	maxAnnotations = 16
	maxActions     = 8
)

// reserved are the labels that each alert has by itself.
var reserved = []string{"alertname", "severity", "node", "namespace", "pod", "uid", "container"}

var (
	ruleName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_:-]{0,127}$`)
	labelName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

func (l *loader) group(n *yaml.Node) {
	var name string
	var list *yaml.Node
	l.Fields(n, "a group", []rulefile.Key{rulefile.Required("name", l.Text(&name)), rulefile.Required("rules", func(n *yaml.Node) { list = n })})
	if list != nil {
		l.Each(func(n *yaml.Node) { l.rule(n, name) })(list)
	}
}

// Program is the compiled form of a rule.
type Program struct {
	*expr.Expression
	Labels, Annotations []expr.Template
}

func (l *loader) rule(n *yaml.Node, group string) {
	r := &Rule{Group: group, Scope: expr.ScopePod, File: l.File(), Line: n.Line, Labels: map[string]string{}, Annotations: map[string]string{}}
	var nodes struct{ name, expr, pending, labels, annotations, actions *yaml.Node }
	before := len(l.Mistakes)
	l.Fields(n, "a rule", []rulefile.Key{
		rulefile.Required("name", func(n *yaml.Node) { nodes.name = n; l.Text(&r.Name)(n) }),
		rulefile.Optional("scope", func(n *yaml.Node) { l.Choice(n, (*string)(&r.Scope), "pod", "container", "node", "kubelet") }),
		rulefile.Required("expr", func(n *yaml.Node) { nodes.expr = n; l.Text(&r.Expr)(n) }),
		rulefile.Optional("for", func(n *yaml.Node) { nodes.pending = n; l.Duration(&r.For)(n) }),
		rulefile.Optional("keepFiringFor", l.Duration(&r.KeepFiringFor)),
		rulefile.Required("severity", func(n *yaml.Node) { l.Choice(n, &r.Severity, "critical", "warning", "info") }),
		rulefile.Optional("labels", func(n *yaml.Node) { nodes.labels = n }),
		rulefile.Optional("annotations", func(n *yaml.Node) { nodes.annotations = n }),
		rulefile.Optional("actions", func(n *yaml.Node) { nodes.actions = n }),
	})
	if nodes.name != nil {
		l.name(nodes.name, r)
	}
	if nodes.actions != nil {
		l.Each(func(n *yaml.Node) { l.action(n, r) })(nodes.actions)
		if len(r.Actions) > maxActions {
			l.Mistake(nodes.actions, "a rule has at most %d actions", maxActions)
		}
	}
	r.Program = &Program{}
	if nodes.expr != nil && r.Expr != "" {
		l.expr(nodes.expr, nodes.pending, r)
	} else if nodes.expr != nil && before == len(l.Mistakes) {
		l.Mistake(nodes.expr, "the expression is empty")
	}
	if nodes.labels != nil {
		r.Program.Labels = l.templates(nodes.labels, r, r.Labels, "label", maxLabels)
	}
	if nodes.annotations != nil {
		r.Program.Annotations = l.templates(nodes.annotations, r, r.Annotations, "annotation", maxAnnotations)
	}
	if len(l.rules) == maxRules {
		l.Mistake(n, "there are more than %d rules", maxRules)
	}
	l.rules = append(l.rules, r)
}

func (l *loader) name(n *yaml.Node, r *Rule) {
	switch where, twice := l.names[r.Name]; {
	case !ruleName.MatchString(r.Name):
		l.Mistake(n, "the name of a rule is %q, want letters, digits, - and _, such as PodNotReady", text.Cut(r.Name, 64))
	case r.Name == FailingRule:
		l.Mistake(n, "%s is the alert about rules that cannot be evaluated: want another name", r.Name)
	case twice:
		l.Mistake(n, "there is another rule %s, at %s", r.Name, where)
	default:
		l.names[r.Name] = fmt.Sprintf("%s:%d", l.File(), n.Line)
	}
}

// expr compiles the expression of a rule.
func (l *loader) expr(n, pending *yaml.Node, r *Rule) {
	compiled, faults := l.Compile(r.Scope, r.Expr, cel.BoolType)
	for _, f := range faults {
		l.Inside(n, expr.OffsetOf(r.Expr, f.Line, f.Column), f.Message)
	}
	if compiled == nil {
		return
	}
	r.Program.Expression = compiled
	if !compiled.Event {
		return
	}
	if r.For != 0 {
		l.Mistake(pending, "the expression is about a transition, which has no duration: for must not be set")
	}
	if r.KeepFiringFor == 0 {
		l.Mistake(n, "the expression is about a transition, which is over at once: keepFiringFor must say how long the alert fires")
	}
}

func (l *loader) templates(n *yaml.Node, r *Rule, into map[string]string, what string, limit int) []expr.Template {
	if n.Kind != yaml.MappingNode {
		l.Mistake(n, "is %s, want a mapping of %ss", rulefile.KindOf(n), what)
		return nil
	}
	if len(n.Content)/2 > limit {
		l.Mistake(n, "a rule has at most %d %ss", limit, what)
		return nil
	}
	var list []expr.Template
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		_, twice := into[name.Value]
		switch {
		case !labelName.MatchString(name.Value):
			l.Mistake(name, "the name of a %s is %q, want letters, digits and _", what, text.Cut(name.Value, 64))
		case twice:
			l.Mistake(name, "%s is there twice", name.Value)
		case what == "label" && slices.Contains(reserved, name.Value):
			l.Mistake(name, "each alert has the label %s by itself", name.Value)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			l.Mistake(value, "is %s, want a text", rulefile.KindOf(value))
		default:
			into[name.Value] = value.Value
			list = append(list, l.CompileTemplate(r.Scope, name.Value, value.Value, func(offset int, message string) { l.Inside(value, offset, message) }))
		}
	}
	return list
}
