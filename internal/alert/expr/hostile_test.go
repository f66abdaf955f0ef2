package expr_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/alert/ruletest/scene"
	"github.com/statusd/statusd/internal/view"
)

// hostile are expressions that would be too expensive, and the part of the mistake that says so.
var hostile = []struct{ name, expr, mistake string }{
	{"nested comprehensions", strings.Repeat("pod.containerDetails.all(c, ", 6) + "true" + strings.Repeat(")", 6), "too expensive"},
	{"deep nesting", strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500), "recursion"},
	{"deep unary", strings.Repeat("!", 3000) + "true", ""},
	{"too long", "true" + strings.Repeat(" || true", 2000), "bytes"},
	{"no end of text", `size(pod.why` + strings.Repeat(" + pod.why", 400) + `) > 0`, "recursion"},
	{"a large list", "size([" + strings.Repeat("pod.why,", 480) + "]) > 0", ""},
	{"an expensive pattern", `pod.why.matches("` + strings.Repeat("(a*)*", 200) + `")`, ""},
	{"map is not there", `pod.containerDetails.map(c, c.name).size() > 0`, "not known"},
	{"objects cannot be made", `Pod{name: "x"}.name == "x"`, ""},
}

// A hostile expression is refused when it is compiled, or ends within its budget.
func TestHostileExpressionsAreRefusedOrEnd(t *testing.T) {
	c, err := expr.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			compiled, faults := c.Compile(expr.ScopePod, h.expr, cel.BoolType)
			if compiled == nil {
				if message := fmt.Sprint(faults); h.mistake == "" || !strings.Contains(message, h.mistake) {
					t.Errorf("refused: %s", message)
				}
				return
			}
			if h.mistake != "" {
				t.Error("was compiled")
			}
			if _, err := compiled.IsTrue(t.Context(), momentOfAll(t)); err != nil && !expr.IsOverrun(err) && !strings.Contains(err.Error(), "cannot be made") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// momentOfAll is a moment of the pod web, with all that any scope has.
func momentOfAll(t *testing.T) *expr.Moment {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := scene.New(start)
	for i, phase := range []string{"Running", "Failed"} {
		pod := map[string]any{"metadata": map[string]any{"name": "web"}, "status": map[string]any{"phase": phase, "containerStatuses": []any{map[string]any{"name": "app"}}}}
		if _, err := s.Take(scene.Step{At: time.Duration(i) * time.Minute, What: map[string]any{"pod": pod}}); err != nil {
			t.Fatal(err)
		}
	}
	detail, ok := view.Describe(view.Sources{Source: s, Audit: s, Location: time.UTC}, "default.web")
	if !ok || len(detail.History) == 0 {
		t.Fatalf("no pod with a history: %+v", detail)
	}
	m := &expr.Moment{Now: s.Now, Records: detail.History, Change: &detail.History[0]}
	m.SetPod(detail)
	m.SetNode(expr.Node{NodeDetail: s.Node(), Counts: map[explain.State]int{explain.StateFailed: 1}})
	return m
}

// FuzzExpression: no expression panics or takes longer than its budget, in any scope.
func FuzzExpression(f *testing.F) {
	for _, r := range ruleset.Pack().Rules() {
		f.Add(r.Expr, string(r.Scope))
	}
	for _, h := range hostile {
		f.Add(h.expr, "pod")
	}
	f.Add(`now - pod.created > duration("1h") && duration("-1s") < durationIn("x") - duration("9223372036s")`, "pod")
	c, err := expr.NewCompiler()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source, scope string) {
		if !slices.Contains(expr.Scopes, expr.Scope(scope)) {
			return
		}
		compiled, faults := c.Compile(expr.Scope(scope), source, expr.TemplateTypes...)
		if compiled == nil {
			if len(faults) == 0 {
				t.Fatal("refused without a reason")
			}
			for _, f := range faults {
				if offset := expr.OffsetOf(source, f.Line, f.Column); f.Line < 1 || f.Column < 1 || offset > len(source) {
					t.Errorf("%+v is outside the expression", f)
				}
			}
			return
		}
		m := momentOfAll(t)
		var err error
		m.InContainer(0, func() { _, err = expr.Evaluate(compiled, context.Background(), m) })
		if err != nil && strings.Contains(err.Error(), "internal error") {
			t.Errorf("%s: %v", source, err)
		}
		if !m.Next.IsZero() && !m.Next.After(m.Now) {
			t.Errorf("%s: the next look at %v is not after %v", source, m.Next, m.Now)
		}
	})
}
