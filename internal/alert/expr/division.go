package expr

import (
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// divisionFaults finds integer divisions by a divisor that may be 0: the evaluation would then fail. A divisor that the
// expression compares with a number somewhere is considered handled.
func divisionFaults(checked *ast.AST) (faults []Fault) {
	written := func(e ast.Expr) string {
		text, err := parser.Unparse(e, checked.SourceInfo())
		if err != nil {
			return ""
		}
		return text
	}
	compared := map[string]bool{}
	visit(checked.Expr(), func(e ast.Expr) {
		if e.Kind() == ast.CallKind && comparisons[e.AsCall().FunctionName()] && len(e.AsCall().Args()) == 2 {
			for side, arg := range e.AsCall().Args() {
				if e.AsCall().Args()[1-side].Kind() == ast.LiteralKind {
					compared[written(arg)] = true
				}
			}
		}
	})
	visit(checked.Expr(), func(e ast.Expr) {
		if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		call, divisor := e.AsCall(), e.AsCall().Args()[1]
		if name := call.FunctionName(); name != operators.Divide && name != operators.Modulo || !integer(checked.GetType(divisor.ID())) {
			return
		}
		at := checked.SourceInfo().GetStartLocation(leftmost(divisor).ID())
		place := Fault{Line: max(1, at.Line()), Column: max(1, at.Column()+1)}
		text := written(divisor)
		switch zero, isLiteral := isZero(divisor); {
		case zero:
			place.Message = "a division by 0"
		case isLiteral || compared[text]:
			return
		default:
			place.Message = fmt.Sprintf("a division by %s, which may be 0: write %s > 0 && …, or divide by double(%s)", text, text, text)
		}
		faults = append(faults, place)
	})
	return faults
}

func integer(t *types.Type) bool { return t.Kind() == types.IntKind || t.Kind() == types.UintKind }

func isZero(e ast.Expr) (zero, isLiteral bool) {
	if e.Kind() != ast.LiteralKind {
		return false, false
	}
	value := e.AsLiteral()
	return value.Equal(types.IntZero) == types.True, true
}

// leftmost is where an expression begins: CEL places pod.restarts at its dot.
func leftmost(e ast.Expr) ast.Expr {
	switch {
	case e.Kind() == ast.SelectKind:
		return leftmost(e.AsSelect().Operand())
	case e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction():
		return leftmost(e.AsCall().Target())
	}
	return e
}
