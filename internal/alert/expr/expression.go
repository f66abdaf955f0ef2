package expr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	// MaxExpression is how long an expression may be.
	MaxExpression = 4096
	// maxDepth is how deep an expression may be nested.
	maxDepth = 32
	// MaxCost is the maximum cost of one evaluation, in the units of CEL: about as many steps.
	MaxCost = 200_000
)

// Compiler makes programs of expressions. It has an environment for each scope and is used by one
// goroutine.
type Compiler struct {
	envs     map[Scope]*cel.Env
	provider *provider
}

func NewCompiler() (*Compiler, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	c := &Compiler{envs: map[Scope]*cel.Env{}, provider: &provider{Provider: registry}}
	for _, scope := range Scopes {
		options := []cel.EnvOption{
			cel.StdLib(), cel.CustomTypeAdapter(registry), cel.CustomTypeProvider(c.provider), cel.DefaultUTCTimeZone(true),
			cel.CrossTypeNumericComparisons(true), cel.ParserRecursionLimit(maxDepth), cel.ParserExpressionSizeLimit(MaxExpression),
			cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
		}
		for _, v := range variables {
			if v.in(scope) {
				options = append(options, cel.Variable(v.name, v.typ))
			}
		}
		if c.envs[scope], err = cel.NewCustomEnv(append(options, declarations(scope)...)...); err != nil {
			return nil, fmt.Errorf("rules: environment of scope %s: %w", scope, err)
		}
	}
	return c, nil
}

// variable is a name that expressions of some scopes can use.
type variable struct {
	name   string
	typ    *cel.Type
	doc    string
	scopes []Scope
}

func (v variable) in(scope Scope) bool {
	for _, s := range v.scopes {
		if s == scope {
			return true
		}
	}
	return false
}

var variables = []variable{
	{"pod", cel.ObjectType("Pod"), "The pod; in scope container the pod of the container.", []Scope{ScopePod, ScopeContainer}},
	{"container", cel.ObjectType("Container"), "The container.", []Scope{ScopeContainer}},
	{"node", cel.ObjectType("Node"), "This node.", []Scope{ScopeNode, ScopeKubelet}},
	{"kubelet", cel.ObjectType("Kubelet"), "The kubelet of this node.", []Scope{ScopeNode, ScopeKubelet}},
	{"now", cel.TimestampType, "The time of the evaluation.", Scopes},
	{"change", cel.ObjectType("Change"), "The transition that caused the evaluation.", Scopes},
	{"from", cel.StringType, "`change.from`: what it was.", Scopes},
	{"to", cel.StringType, "`change.to`: what it became.", Scopes},
}

// Expression is a compiled expression.
type Expression struct {
	reading
	program cel.Program
	result  *cel.Type
}

// Fault is an error in an expression, at a line and column of its text, both from 1.
type Fault struct {
	Line, Column int
	Message      string
}

// Compile checks an expression. Its result has one of the types wanted.
func (c *Compiler) Compile(scope Scope, source string, wanted ...*cel.Type) (*Expression, []Fault) {
	env := c.envs[scope]
	c.provider.missing = nil
	if len(source) > MaxExpression {
		return nil, []Fault{{1, 1, fmt.Sprintf("the expression has %d bytes, at most %d are allowed", len(source), MaxExpression)}}
	}
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		var faults []Fault
		if looksLikePromQL(source) {
			return nil, []Fault{{1, 1, notPromQL}}
		}
		for _, e := range issues.Errors() {
			faults = append(faults, c.faultOf(scope, source, e))
		}
		return nil, faults
	}
	if !oneOf(checked.OutputType(), wanted) {
		return nil, []Fault{{1, 1, fmt.Sprintf("the expression is a %s, want %s", typeNames([]*cel.Type{checked.OutputType()}), typeNames(wanted))}}
	}
	if faults := append(wordFaults(checked.NativeRep()), divisionFaults(checked.NativeRep())...); len(faults) > 0 {
		return nil, faults
	}
	estimate, err := env.EstimateCost(checked, estimator{})
	if err != nil {
		return nil, []Fault{{1, 1, err.Error()}}
	}
	if estimate.Max > MaxCost {
		return nil, []Fault{{1, 1, fmt.Sprintf("the expression is too expensive: its estimated cost is up to %d, at most %d are allowed; use fewer nested exists and all", estimate.Max, MaxCost)}}
	}
	e := &Expression{reading: read(checked.NativeRep()), result: checked.OutputType()}
	e.program, err = env.Program(checked, append(costLimited(MaxCost), cel.EvalOptions(cel.OptOptimize), e.exactly())...)
	if err != nil {
		return nil, []Fault{{1, 1, err.Error()}}
	}
	return e, nil
}

// costLimited ends an evaluation that costs more than a limit, or whose context ends.
func costLimited(limit uint64) []cel.ProgramOption {
	return []cel.ProgramOption{cel.CostLimit(limit), cel.CostTracking(runtimeCosts{}), cel.InterruptCheckFrequency(64)}
}

// faultOf points at the name that is wrong. CEL points at the dot before a field and at the
// parenthesis after a function.
func (c *Compiler) faultOf(scope Scope, source string, e *cel.Error) Fault {
	f := Fault{max(1, e.Location.Line()), max(1, e.Location.Column()+1), c.improve(scope, e.Message)}
	offset := OffsetOf(source, f.Line, f.Column)
	if offset >= len(source) {
		return f
	}
	switch name, _ := between(e.Message, "'", "'"); {
	case source[offset] == '.':
		f.Column++
	case source[offset] == '(' && strings.HasSuffix(source[:offset], name):
		f.Column -= utf8.RuneCountInString(name)
	}
	return f
}

func oneOf(t *cel.Type, wanted []*cel.Type) bool {
	for _, w := range wanted {
		if t.IsExactType(w) {
			return true
		}
	}
	return false
}

// evaluate returns the value of an expression. An [unknownFact] error means that a fact is missing,
// any other error that the expression is wrong.
func (e *Expression) evaluate(ctx context.Context, m *Moment) (ref.Val, error) {
	value, _, err := e.program.ContextEval(ctx, m)
	if err != nil {
		return nil, err
	}
	return value, nil
}

// IsTrue reports whether the expression is true. An expression that needs an unknown fact is false.
func (e *Expression) IsTrue(ctx context.Context, m *Moment) (bool, error) {
	value, err := e.evaluate(ctx, m)
	if err != nil {
		if isUnknown(err) {
			return false, nil
		}
		return false, err
	}
	return value == types.True, nil
}

func isUnknown(err error) bool {
	var unknown unknownFact
	return errors.As(err, &unknown) || isNoSuchKey(err)
}

// isNoSuchKey reports whether a map or a list has no such item: a label that is not set, a condition that is not reported.
func isNoSuchKey(err error) bool {
	return strings.Contains(err.Error(), "no such key") || strings.Contains(err.Error(), "index out of bounds")
}

// estimator knows how large the values of the vocabulary can be.
type estimator struct{}

// EstimateSize implements [checker.CostEstimator].
func (estimator) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	switch t := element.Type(); t.Kind() {
	case types.StringKind, types.BytesKind:
		return &checker.SizeEstimate{Max: maxText}
	case types.ListKind:
		if t.Parameters()[0].TypeName() == "Probe" {
			return &checker.SizeEstimate{Max: 3}
		}
		return &checker.SizeEstimate{Max: maxItems}
	case types.MapKind:
		return &checker.SizeEstimate{Max: maxItems}
	}
	return nil
}

// EstimateCallCost implements [checker.CostEstimator].
func (estimator) EstimateCallCost(name, _ string, _ *checker.AstNode, _ []checker.AstNode) *checker.CallEstimate {
	if cost := costOf(name); cost != 0 {
		estimate := &checker.CallEstimate{CostEstimate: checker.FixedCostEstimate(cost)}
		if name == "join" {
			estimate.ResultSize = &checker.SizeEstimate{Max: maxText}
		}
		return estimate
	}
	return nil
}

// runtimeCosts are what the functions of the vocabulary cost when they are called.
type runtimeCosts struct{}

// CallCost implements [interpreter.ActualCostEstimator].
func (runtimeCosts) CallCost(name, _ string, _ []ref.Val, _ ref.Val) *uint64 {
	if cost := costOf(name); cost != 0 {
		return &cost
	}
	return nil
}

// costOf is what a function of the vocabulary costs: it looks at each record of a history once or twice.
func costOf(name string) uint64 {
	if name == "join" {
		return maxItems
	}
	for i := range functions {
		if functions[i].name == name {
			return 100
		}
	}
	return 0
}

// difference is by how much one duration or timestamp is ahead of another of its type.
func difference(a, b ref.Val) (time.Duration, bool) {
	switch a := a.(type) {
	case types.Duration:
		b, ok := b.(types.Duration)
		return subtract(a.Duration, b.Duration), ok
	case types.Timestamp:
		b, ok := b.(types.Timestamp)
		return a.Time.Sub(b.Time), ok
	}
	return 0, false
}

// subtract does not overflow.
func subtract(a, b time.Duration) time.Duration {
	d := a - b
	switch {
	case a >= 0 && b < 0 && d < 0:
		return math.MaxInt64
	case a < 0 && b > 0 && d > 0:
		return math.MinInt64 + 1
	}
	return d
}

// IsOverrun reports whether an evaluation was ended because it cost too much or took too long.
func IsOverrun(err error) bool {
	return errors.Is(err, interpreter.InterruptError{}) || strings.Contains(err.Error(), "cost limit exceeded") || errors.Is(err, context.DeadlineExceeded)
}
