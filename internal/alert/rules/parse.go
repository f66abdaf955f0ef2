package rules

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	yaml "go.yaml.in/yaml/v3"
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
	l.fields(n, "a group", []key{{"name", true, l.text(&name)}, {"rules", true, func(n *yaml.Node) { list = n }}})
	if list != nil {
		l.each(func(n *yaml.Node) { l.rule(n, name) })(list)
	}
}

// program is what a rule is evaluated by.
type program struct {
	*expression
	labels, annotations []filling
}

func (l *loader) rule(n *yaml.Node, group string) {
	r := &Rule{Group: group, Scope: ScopePod, File: l.doc.file, Line: n.Line, Labels: map[string]string{}, Annotations: map[string]string{}}
	var nodes struct{ name, expr, pending, labels, annotations, actions *yaml.Node }
	before := len(l.mistakes)
	l.fields(n, "a rule", []key{
		{"name", true, func(n *yaml.Node) { nodes.name = n; l.text(&r.Name)(n) }},
		{"scope", false, func(n *yaml.Node) { l.choice(n, (*string)(&r.Scope), "pod", "container", "node", "kubelet") }},
		{"expr", true, func(n *yaml.Node) { nodes.expr = n; l.text(&r.Expr)(n) }},
		{"for", false, func(n *yaml.Node) { nodes.pending = n; l.duration(&r.For)(n) }},
		{"keepFiringFor", false, l.duration(&r.KeepFiringFor)},
		{"severity", true, func(n *yaml.Node) { l.choice(n, &r.Severity, "critical", "warning", "info") }},
		{"labels", false, func(n *yaml.Node) { nodes.labels = n }},
		{"annotations", false, func(n *yaml.Node) { nodes.annotations = n }},
		{"actions", false, func(n *yaml.Node) { nodes.actions = n }},
	})
	if nodes.name != nil {
		l.name(nodes.name, r)
	}
	if nodes.actions != nil {
		l.each(func(n *yaml.Node) { l.action(n, r) })(nodes.actions)
		if len(r.Actions) > maxActions {
			l.mistake(nodes.actions, "a rule has at most %d actions", maxActions)
		}
	}
	r.program = &program{}
	if nodes.expr != nil && r.Expr != "" {
		l.expr(nodes.expr, nodes.pending, r)
	} else if nodes.expr != nil && before == len(l.mistakes) {
		l.mistake(nodes.expr, "the expression is empty")
	}
	if nodes.labels != nil {
		r.program.labels = l.templates(nodes.labels, r, r.Labels, "label", maxLabels)
	}
	if nodes.annotations != nil {
		r.program.annotations = l.templates(nodes.annotations, r, r.Annotations, "annotation", maxAnnotations)
	}
	if len(l.rules) == maxRules {
		l.mistake(n, "there are more than %d rules", maxRules)
	}
	l.rules = append(l.rules, r)
}

func (l *loader) name(n *yaml.Node, r *Rule) {
	switch where, twice := l.names[r.Name]; {
	case !ruleName.MatchString(r.Name):
		l.mistake(n, "the name of a rule is %q, want letters, digits, - and _, such as PodNotReady", bounded(r.Name, 64))
	case r.Name == ruleFails.Name:
		l.mistake(n, "%s is the alert about rules that cannot be evaluated: want another name", r.Name)
	case twice:
		l.mistake(n, "there is another rule %s, at %s", r.Name, where)
	default:
		l.names[r.Name] = fmt.Sprintf("%s:%d", l.doc.file, n.Line)
	}
}

// expr compiles the expression of a rule.
func (l *loader) expr(n, pending *yaml.Node, r *Rule) {
	expr, faults := l.compile(r.Scope, r.Expr, cel.BoolType)
	for _, f := range faults {
		l.inside(n, offsetOf(r.Expr, f.line, f.column), f.message)
	}
	if expr == nil {
		return
	}
	r.program.expression = expr
	if !expr.event {
		return
	}
	if r.For != 0 {
		l.mistake(pending, "the expression is about a transition, which has no duration: for must not be set")
	}
	if r.KeepFiringFor == 0 {
		l.mistake(n, "the expression is about a transition, which is over at once: keepFiringFor must say how long the alert fires")
	}
}

func (l *loader) templates(n *yaml.Node, r *Rule, into map[string]string, what string, limit int) []filling {
	if n.Kind != yaml.MappingNode {
		l.mistake(n, "is %s, want a mapping of %ss", kindOf(n), what)
		return nil
	}
	if len(n.Content)/2 > limit {
		l.mistake(n, "a rule has at most %d %ss", limit, what)
		return nil
	}
	var list []filling
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		_, twice := into[name.Value]
		switch {
		case !labelName.MatchString(name.Value):
			l.mistake(name, "the name of a %s is %q, want letters, digits and _", what, bounded(name.Value, 64))
		case twice:
			l.mistake(name, "%s is there twice", name.Value)
		case what == "label" && slices.Contains(reserved, name.Value):
			l.mistake(name, "each alert has the label %s by itself", name.Value)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			l.mistake(value, "is %s, want a text", kindOf(value))
		default:
			into[name.Value] = value.Value
			list = append(list, l.compileTemplate(r.Scope, name.Value, value.Value, func(offset int, message string) { l.inside(value, offset, message) }))
		}
	}
	return list
}

func (l *loader) choice(n *yaml.Node, into *string, known ...string) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(known, n.Value) {
		l.mistake(n, "is %s%s, want %s", kindOf(n), meant(n.Value, known), strings.Join(known, ", "))
		return
	}
	*into = n.Value
}

func (l *loader) duration(into *time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d, err := ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			l.mistake(n, "is %s, want a duration such as 30s, 5m, 1h30m or 2d", kindOf(n))
			return
		}
		*into = d
	}
}

var durationPart = regexp.MustCompile(`^(\d{1,9})(ms|s|m|h|d|w)`)

var units = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}

// ParseDuration reads a duration of at most a year as Prometheus writes them: 1h30m, 2d.
func ParseDuration(source string) (time.Duration, error) {
	if source == "0" {
		return 0, nil
	}
	var total time.Duration
	rest := source
	for rest != "" {
		m := durationPart.FindStringSubmatch(rest)
		if m == nil {
			return 0, fmt.Errorf("%q is no duration", source)
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > int64((math.MaxInt64-total)/units[m[2]]) {
			return 0, fmt.Errorf("%q is too long", source)
		}
		total += time.Duration(n) * units[m[2]]
		rest = rest[len(m[0]):]
	}
	if source == "" || total > 366*24*time.Hour {
		return 0, fmt.Errorf("%q is no duration of at most a year", source)
	}
	return total, nil
}
