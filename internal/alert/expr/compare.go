package expr

import (
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// reading is what a look at an expression finds out, before it is ever evaluated.
type reading struct {
	// Event: the expression uses the transition that caused the evaluation.
	Event bool
	// Counts: the expression uses the numbers of pods.
	Counts bool
	// Loose: the expression uses time such that the instant of its next change is unknown. It is evaluated again after
	// [Relook].
	Loose bool
	// compares are the comparisons of a moving value with a static one, by ID.
	compares map[int64]mover
}

// mover is the side of a comparison that moves with time: it grows by a second per second, or falls.
type mover struct {
	side  int
	falls bool
}

func read(checked *ast.AST) reading {
	r := reading{compares: map[int64]mover{}}
	covered := map[int64]bool{} // what a comparison takes care of
	visit(checked.Expr(), func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			switch e.AsIdent() {
			case "change", "from", "to":
				r.Event = true
			}
		case ast.SelectKind:
			if s := e.AsSelect(); s.FieldName() == "pods" && s.Operand().Kind() == ast.IdentKind && s.Operand().AsIdent() == "node" {
				r.Counts = true
			}
		case ast.CallKind:
			if call := e.AsCall(); comparisons[call.FunctionName()] && len(call.Args()) == 2 {
				for side, arg := range call.Args() {
					if up, down := grows(arg), falls(arg); (up || down) && isStatic(call.Args()[1-side]) {
						r.compares[e.ID()] = mover{side, down}
						visit(arg, func(inner ast.Expr) { covered[inner.ID()] = true })
					}
				}
			}
		}
	})
	visit(checked.Expr(), func(e ast.Expr) {
		if isClock(e) && !covered[e.ID()] {
			r.Loose = true
		}
	})
	return r
}

func visit(e ast.Expr, look func(ast.Expr)) {
	ast.PreOrderVisit(e, ast.NewExprVisitor(look))
}

var comparisons = map[string]bool{
	operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	operators.Equals: true, operators.NotEquals: true,
}

// isClock reports whether the value of this node itself changes with time alone, without steps that
// it announces.
func isClock(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent() == "now"
	case ast.CallKind:
		return e.AsCall().FunctionName() == "durationIn"
	}
	return false
}

// isStatic reports whether nothing in an expression changes with time alone.
func isStatic(e ast.Expr) bool {
	static := true
	visit(e, func(inner ast.Expr) { static = static && !isClock(inner) })
	return static
}

// grows reports whether an expression grows by a second per second: now, durationIn, and these plus
// or minus a static value.
func grows(e ast.Expr) bool {
	if isClock(e) {
		if e.Kind() == ast.CallKind {
			for _, arg := range e.AsCall().Args() {
				if !isStatic(arg) {
					return false
				}
			}
		}
		return true
	}
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return false
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.Subtract:
		return grows(args[0]) && isStatic(args[1])
	case operators.Add:
		return grows(args[0]) && isStatic(args[1]) || isStatic(args[0]) && grows(args[1])
	}
	return false
}

// falls reports whether an expression falls by a second per second: a static value minus a growing one.
func falls(e ast.Expr) bool {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 || e.AsCall().FunctionName() != operators.Subtract {
		return false
	}
	args := e.AsCall().Args()
	return isStatic(args[0]) && grows(args[1]) || falls(args[0]) && isStatic(args[1])
}

// exactly makes the comparisons of a program note the instant at which their result changes.
func (r reading) exactly() cel.ProgramOption {
	return cel.CustomDecorator(func(i interpreter.Interpretable) (interpreter.Interpretable, error) {
		call, ok := i.(interpreter.InterpretableCall)
		moving, known := r.compares[i.ID()]
		if !ok || !known || !comparisons[call.Function()] || len(call.Args()) != 2 {
			return i, nil
		}
		if _, wrapped := i.(*comparison); wrapped {
			return i, nil
		}
		return &comparison{InterpretableCall: call, mover: moving}, nil
	})
}

// comparison compares a value that moves with time with a static one.
type comparison struct {
	interpreter.InterpretableCall
	mover
}

// Eval implements [interpreter.Interpretable].
func (c *comparison) Eval(vars interpreter.Activation) ref.Val {
	found, _ := vars.ResolveName(momentName)
	m, ok := found.(*Moment)
	if !ok {
		return c.InterpretableCall.Eval(vars)
	}
	var values [2]ref.Val
	moves := false
	for i, arg := range c.Args() {
		if i == c.side {
			values[i], moves = m.moving(func() ref.Val { return arg.Eval(vars) })
		} else {
			values[i] = arg.Eval(vars)
		}
	}
	for _, v := range values {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	ahead, ok := difference(values[c.side], values[1-c.side])
	if !ok {
		return types.NewErr("a %s cannot be compared with a %s", values[0].Type().TypeName(), values[1].Type().TypeName())
	}
	// It has the same result until both are equal, and another one right after that.
	if distance := c.distance(ahead); moves && distance >= 0 {
		m.Look(m.Now.Add(distance))
	}
	if c.side == 1 {
		ahead = -ahead
	}
	return types.Bool(holds(c.Function(), int64(ahead)))
}

// distance is how long it takes until both sides are equal; it is negative if they have been.
func (m mover) distance(ahead time.Duration) time.Duration {
	if m.falls {
		return ahead
	}
	return -ahead
}

// moving evaluates what moves with time within a comparison, and reports whether it does.
func (m *Moment) moving(evaluate func() ref.Val) (ref.Val, bool) {
	before := m.ticked
	m.ticked = false
	m.exact++
	value := evaluate()
	m.exact--
	moves := m.ticked
	m.ticked = before || moves
	return value, moves
}

// holds reports whether a comparison is true if the left value exceeds the right one by ahead.
func holds(operator string, ahead int64) bool {
	switch operator {
	case operators.Less:
		return ahead < 0
	case operators.LessEquals:
		return ahead <= 0
	case operators.Greater:
		return ahead > 0
	case operators.GreaterEquals:
		return ahead >= 0
	case operators.Equals:
		return ahead == 0
	}
	return ahead != 0
}
