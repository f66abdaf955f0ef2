package expr

import (
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/parser"
)

// function is a function of the vocabulary. Called without an object it is about the subject of the
// rule: changes(d) in a rule of scope container is container.changes(d).
type function struct {
	name, signature, doc string
	args                 []*cel.Type
	result               *cel.Type
	on                   []string // the types that have it
	call                 func(o *object, args []ref.Val) ref.Val
}

var subjects = []string{"Pod", "Container", "Node", "Kubelet"}

var functions = []function{
	{"changes", "changes(duration) int", "How many transitions there were within the duration.",
		[]*cel.Type{cel.DurationType}, cel.IntType, []string{"Pod", "Container", "Node"},
		func(o *object, args []ref.Val) ref.Val { return types.Int(o.past().changes(asDuration(args[0]))) }},
	{"restarts", "restarts(duration) int", "How many restarts of containers there were within the duration.",
		[]*cel.Type{cel.DurationType}, cel.IntType, []string{"Pod", "Container"},
		func(o *object, args []ref.Val) ref.Val { return types.Int(o.past().restarts(asDuration(args[0]))) }},
	{"flaps", "flaps(duration) int", "How often it became not ready within the duration, after it had been ready.",
		[]*cel.Type{cel.DurationType}, cel.IntType, []string{"Pod", "Container", "Node"},
		func(o *object, args []ref.Val) ref.Val { return types.Int(o.past().flaps(asDuration(args[0]))) }},
	{"ended", "ended(reason, duration) int", "How many runs of containers ended for the reason within the duration, such as `ended(\"OOMKilled\", duration(\"10m\"))`. An empty reason is any.",
		[]*cel.Type{cel.StringType, cel.DurationType}, cel.IntType, []string{"Pod", "Container"},
		func(o *object, args []ref.Val) ref.Val {
			return types.Int(o.past().ended(asText(args[0]), asDuration(args[1])))
		}},
	{"was", "was(state, duration) bool", "Whether it was in the state at any time within the duration: a phase of a pod, a state or a reason of a container.",
		[]*cel.Type{cel.StringType, cel.DurationType}, cel.BoolType, []string{"Pod", "Container", "Node"},
		func(o *object, args []ref.Val) ref.Val {
			return types.Bool(o.past().was(asText(args[0]), asDuration(args[1])))
		}},
	{"durationIn", "durationIn(state) duration", "How long it has been in the state; 0 if it is not in it. A pod: its state or phase. A container: its state or reason. The node: a condition that is True, `Ready`, `NotReady`. The kubelet: its health.",
		[]*cel.Type{cel.StringType}, cel.DurationType, subjects,
		func(o *object, args []ref.Val) ref.Val {
			return types.Duration{Duration: o.durationIn(asText(args[0]))}
		}},
}

func asDuration(v ref.Val) time.Duration {
	d, _ := v.(types.Duration)
	return d.Duration
}

func asText(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

// past is the history of the object.
func (o *object) past() past {
	if c, ok := o.v.(*containerFacts); ok {
		return past{at: o.at, container: c.Name}
	}
	return past{at: o.at}
}

// durationIn is how long the object has been in a state.
func (o *object) durationIn(state string) time.Duration {
	var since time.Time
	switch v := o.v.(type) {
	case *podFacts:
		since = v.since(o, state)
	case *containerFacts:
		since = v.since(o, state)
	case *nodeFacts:
		since = v.since(state)
	case *kubeletFacts:
		if string(v.health()) == state {
			since = v.verdict().Since
		}
	}
	if since.IsZero() {
		return 0
	}
	o.at.ticks()
	return o.at.Now.Sub(since)
}

// since is when the pod came into a state, zero if it is not in it.
func (f *podFacts) since(o *object, state string) time.Time {
	switch {
	case string(f.State) == state && f.Since != nil:
		return *f.Since
	case string(f.State) == state || string(f.Phase) == state:
		return known(o.past().phaseSince(state), f.Created)
	}
	return time.Time{}
}

func (f *containerFacts) since(o *object, state string) time.Time {
	switch {
	case string(f.State) != state && f.Reason != state:
		return time.Time{}
	case f.Since != nil:
		return *f.Since
	}
	return known(o.past().entered(state), f.pod.Created)
}

func (f *nodeFacts) since(state string) time.Time {
	for _, c := range f.conditions {
		if c.kind == state && c.status == "True" || c.kind == "Ready" && state == "NotReady" && c.status != "True" {
			return c.since
		}
	}
	return time.Time{}
}

// known is the first of the times that is known.
func known(at time.Time, otherwise *time.Time) time.Time {
	if at.IsZero() && otherwise != nil {
		return *otherwise
	}
	return at
}

// declarations are the functions and the macros that make them about the subject of a scope.
func declarations(scope Scope) []cel.EnvOption {
	var options []cel.EnvOption
	var macros []cel.Macro
	for _, f := range functions {
		var overloads []cel.FunctionOpt
		for _, typ := range f.on {
			call := f.call
			overloads = append(overloads, cel.MemberOverload(typ+"_"+f.name, append([]*cel.Type{cel.ObjectType(typ)}, f.args...), f.result,
				cel.FunctionBinding(func(args ...ref.Val) ref.Val { return call(args[0].(*object), args[1:]) })))
		}
		options = append(options, cel.Function(f.name, overloads...))
		macros = append(macros, cel.GlobalMacro(f.name, len(f.args), ofSubject(f.name, string(scope))))
	}
	macros = append(macros, cel.GlobalMacro("age", 1, age), cel.HasMacro, cel.AllMacro, cel.ExistsMacro, cel.ExistsOneMacro)
	options = append(options, cel.ClearMacros(), cel.Macros(macros...),
		cel.Function("join", cel.MemberOverload("list_join", []*cel.Type{cel.ListType(cel.StringType), cel.StringType}, cel.StringType, cel.BinaryBinding(join))))
	return options
}

func ofSubject(name, subject string) parser.MacroExpander {
	return func(factory parser.ExprHelper, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
		return factory.NewMemberCall(name, factory.NewIdent(subject), args...), nil
	}
}

// age makes now - t of age(t).
func age(factory parser.ExprHelper, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	return factory.NewCall(operators.Subtract, factory.NewIdent("now"), args[0]), nil
}

// join puts texts together, up to the bound of texts.
func join(items, separator ref.Val) ref.Val {
	lister, ok := items.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(items)
	}
	var parts []string
	for it := lister.Iterator(); it.HasNext() == types.True && len(parts) < maxItems; {
		parts = append(parts, asText(it.Next()))
	}
	return text(strings.Join(parts, asText(separator)))
}
