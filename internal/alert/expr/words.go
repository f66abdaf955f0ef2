package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/history"
	lines "github.com/statusd/statusd/internal/text" // text is a value of CEL here
	"github.com/statusd/statusd/internal/view"
)

var (
	phases = words(v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown)
	states = words(explain.StateUnscheduled, explain.StateStarting, explain.StateInitializing, explain.StateReady, explain.StateNotReady, explain.StateTerminating,
		explain.StateSucceeded, explain.StateFailed, explain.StateRejected, explain.StateEvicted, explain.StateUnknown)
	healths = words(guard.Healthy, guard.Degraded, guard.Unhealthy, guard.Unknown)
)

// closed are the fields that are one of some words, or empty. An expression that compares them with another word is
// never true: it is a mistake.
var closed = map[string][]string{
	"Pod.phase":         phases,
	"Pod.state":         states,
	"Pod.restartPolicy": words(v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever),
	"Pod.qosClass":      words(v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort),
	"Container.kind":    words(view.KindInit, view.KindSidecar, view.KindMain),
	"Container.state":   {"waiting", "running", "terminated"},
	"Probe.kind":        {"startup", "readiness", "liveness"},
	"Condition.status":  words(v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown),
	"Kubelet.health":    healths,
	"Change.kind": words(history.KindPhase, history.KindCondition, history.KindContainer, history.KindReady, history.KindRestart, history.KindProbe, history.KindHook,
		history.KindAdmission, history.KindDelivery, history.KindDeletion, history.KindDrift, history.KindAction, history.KindLog, history.KindNode),
	"Difference.kind":      words(audit.Kinds()...),
	"Difference.certainty": words(audit.Certain, audit.Likely, audit.Possible),
}

// inStates are what durationIn of a type knows, if that is closed.
var inStates = map[string][]string{"Pod": slices.Compact(slices.Sorted(slices.Values(slices.Concat(states, phases)))), "Kubelet": healths}

func words[T ~string](list ...T) []string {
	texts := make([]string, len(list))
	for i, w := range list {
		texts[i] = string(w)
	}
	return texts
}

// wordFaults finds the words that a field, or a state, never is.
func wordFaults(checked *ast.AST) (faults []Fault) {
	check := func(what string, known []string, e ast.Expr) {
		word, ok := literal(e)
		if !ok || word == "" || slices.Contains(known, word) {
			return
		}
		at := checked.SourceInfo().GetStartLocation(e.ID())
		faults = append(faults, Fault{max(1, at.Line()), max(1, at.Column()+1),
			fmt.Sprintf("%s is never %q%s; it is %s", what, lines.Cut(word, 64), lines.DidYouMean(word, known), strings.Join(known, ", "))})
	}
	visit(checked.Expr(), func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		switch name := call.FunctionName(); {
		case (name == operators.Equals || name == operators.NotEquals) && len(call.Args()) == 2:
			for side, arg := range call.Args() {
				if field, known := closedField(checked, arg); known != nil {
					check(field, known, call.Args()[1-side])
				}
			}
		case name == operators.In && len(call.Args()) == 2 && call.Args()[1].Kind() == ast.ListKind:
			if field, known := closedField(checked, call.Args()[0]); known != nil {
				for _, element := range call.Args()[1].AsList().Elements() {
					check(field, known, element)
				}
			}
		case name == "durationIn" && call.IsMemberFunction() && len(call.Args()) == 1:
			typ := checked.GetType(call.Target().ID()).TypeName()
			if known := inStates[typ]; known != nil {
				check("the state of a "+typ, known, call.Args()[0])
			}
		}
	})
	return faults
}

// closedField is the name of a field that an expression selects, and its words, nil if they are not closed.
func closedField(checked *ast.AST, e ast.Expr) (string, []string) {
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() {
		return "", nil
	}
	name := checked.GetType(e.AsSelect().Operand().ID()).TypeName() + "." + e.AsSelect().FieldName()
	return name, closed[name]
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	word, ok := e.AsLiteral().Value().(string)
	return word, ok
}
