package engine

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/ruletest/scene"
)

func isOverrunText(message string) bool { return strings.Contains(message, "cost limit") }

// A rule that costs too much although its estimate was low does not keep the others from being
// evaluated; it is named, and rests.
func TestARuleThatOverrunsIsNamedAndRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := parsed(t, strings.Replace(rulesForTests, "    rules:\n", "    rules:\n      - {name: Slow, severity: info, expr: 'pod.labels.exists(k, pod.labels[k].matches(\"^prod-.*$\"))'}\n", 1))
		slow := labeled("web", 8000)
		slow["pod"].(map[string]any)["status"] = map[string]any{"phase": "Unknown"}
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		e, stop := started(t, Options{Source: node, Set: set, Outputs: []Output{out}})
		defer stop()
		node.put(t, slow)
		expect(t, "both", out.take(), "0s StatusdRuleFails firing\n0s Kept firing web")
		if f := e.Faults(); len(f) != 1 || f[0].Rule != "Slow" || !isOverrunText(f[0].Message) {
			t.Errorf("got %+v", f)
		}
		i := slices.IndexFunc(e.Alerts(), func(a alert.Alert) bool { return a.Rule == ruleFails.Name })
		if i < 0 || !strings.Contains(e.Alerts()[i].Annotations["summary"], "Rule Slow cannot be evaluated") {
			t.Errorf("got %+v", e.Alerts())
		}
		overruns := func() float64 { return testutil.ToFloat64(e.core.metrics.faults.WithLabelValues("Slow", "overrun")) }
		node.put(t, slow)
		if got := overruns(); got != 1 {
			t.Errorf("it rests: got %v evaluations", got)
		}
		time.Sleep(restFor)
		node.put(t, slow)
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
	if err := s.take(scene.Step{What: what}); err != nil {
		t.Fatal(err)
	}
	a := s.core.sorted()
	if len(a) != 1 || len(a[0].Labels["reason"]) > maxLabel || len(a[0].Annotations["summary"]) > maxAnnotation || len(a[0].Labels["reason"]) < maxLabel/2 {
		t.Errorf("got %d alerts, %v", len(a), s.core.faults)
	}
}
