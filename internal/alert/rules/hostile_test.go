package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/statusd/statusd/internal/alert"
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

// A hostile expression is refused when it is loaded, or ends within its budget.
func TestHostileExpressionsAreRefusedOrEnd(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			text := fmt.Sprintf(`{"apiVersion": %q, "kind": "Rules", "groups": [{"name": "g", "rules": [{"name": "H", "severity": "info", "expr": %q}]}]}`, APIVersion, h.expr)
			set, err := Parse("hostile.yaml", []byte(text))
			if err != nil {
				if h.mistake == "" || !strings.Contains(err.Error(), h.mistake) {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if h.mistake != "" {
				t.Error("was taken")
			}
			s := newStage(set, testStart)
			if err := s.take(testStep{what: phase("web", "Running")}); err != nil {
				t.Fatal(err)
			}
			if f := s.core.faults["H"]; f != nil && !isOverrunText(f.message) && !strings.Contains(f.message, "cannot be made") {
				t.Errorf("got %s", f.message)
			}
		})
	}
}

func isOverrunText(message string) bool { return strings.Contains(message, "cost limit") }

// A rule that costs too much although its estimate was low does not keep the others from being
// evaluated; it is named, and rests.
func TestARuleThatOverrunsIsNamedAndRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := parsed(t, rulesForTests)
		overrun := parsed(t, strings.ReplaceAll(rulesForTests, "Failed, expr", "Slow, expr")).Rule("Slow")
		c, err := newCompiler()
		if err != nil {
			t.Fatal(err)
		}
		// No such rule can be loaded: its estimate is above the limit.
		checked, issues := c.envs[ScopePod].Compile(strings.Repeat(`pod.why.matches("(x+x+)+y") || `, 100) + "false")
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := c.envs[ScopePod].Program(checked, costLimited(50)...)
		if err != nil {
			t.Fatal(err)
		}
		overrun.program.expression = &expression{program: program}
		set.rules = slices.Insert(set.rules, 0, overrun)
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		e, stop := started(t, Options{Source: node, Set: set, Outputs: []Output{out}})
		defer stop()
		node.put(t, phase("web", "Unknown"))
		expect(t, "both", out.take(), "0s StatusdRuleFails firing\n0s Kept firing web")
		if f := e.Faults(); len(f) != 1 || f[0].Rule != "Slow" || !isOverrunText(f[0].Message) {
			t.Errorf("got %+v", f)
		}
		i := slices.IndexFunc(e.Alerts(), func(a alert.Alert) bool { return a.Rule == ruleFails.Name })
		if i < 0 || !strings.Contains(e.Alerts()[i].Annotations["summary"], "Rule Slow cannot be evaluated") {
			t.Errorf("got %+v", e.Alerts())
		}
		overruns := func() float64 { return testutil.ToFloat64(e.core.metrics.faults.WithLabelValues("Slow", "overrun")) }
		node.put(t, phase("web", "Unknown"))
		if got := overruns(); got != 1 {
			t.Errorf("it rests: got %v evaluations", got)
		}
		time.Sleep(restFor)
		node.put(t, phase("web", "Unknown"))
		if got := overruns(); got < 2 {
			t.Errorf("it has rested: got %v evaluations", got)
		}
		e.Reload(parsed(t, rulesForTests))
		time.Sleep(ruleFails.KeepFiringFor)
		expect(t, "corrected", out.take(), "11m0s StatusdRuleFails resolved")
	})
}

// Values that are huge are cut: labels, annotations, and what expressions see.
func TestHugeValuesAreCut(t *testing.T) {
	set := parsed(t, `
apiVersion: statusd/v1alpha1
kind: Rules
groups: [{name: g, rules: [{name: Huge, expr: 'size(pod.reason) <= 1024', severity: info, labels: {reason: "{{ pod.reason }}{{ pod.reason }}{{ pod.reason }}"},
  annotations: {summary: "{{ pod.reason }}{{ pod.reason }}{{ pod.reason }}{{ pod.reason }}{{ pod.reason }}{{ pod.reason }}"}}]}]
`)
	s := newStage(set, testStart)
	what := phase("web", "Failed")
	what["pod"].(map[string]any)["status"].(map[string]any)["reason"] = strings.Repeat("ä", 1<<20)
	if err := s.take(testStep{what: what}); err != nil {
		t.Fatal(err)
	}
	a := s.core.sorted()
	if len(a) != 1 || len(a[0].Labels["reason"]) > maxLabel || len(a[0].Annotations["summary"]) > maxAnnotation || len(a[0].Labels["reason"]) < maxLabel/2 {
		t.Errorf("got %d alerts, %v", len(a), s.core.faults)
	}
}
