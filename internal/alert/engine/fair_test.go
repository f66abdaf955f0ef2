package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/view"
)

const fairRules = `apiVersion: statusd/v1alpha1
kind: Rules
groups: [{name: g, rules: [
  {name: Evade, severity: critical, expr: 'pod.labels.exists(k, pod.labels[k].matches("^prod-.*$")) || pod.name == "victim"', annotations: {summary: "{{ pod.name }} is {{ pod.phase }}"}},
  {name: Div, severity: info, expr: '10 / pod.restarts > 3 || pod.restarts < 0'},
]}]
`

// labeled is a pod with so many labels that a rule over them overruns.
func labeled(name string, count int) map[string]any {
	labels := map[string]any{}
	for i := range count {
		labels[fmt.Sprintf("l%d", i)] = strings.Repeat("x", 50)
	}
	return map[string]any{"pod": map[string]any{"metadata": map[string]any{"name": name, "labels": labels}, "status": map[string]any{"phase": "Running"}}}
}

// A pod for which a rule takes too long keeps the rule from itself alone.
func TestOverrun_RestsForItsSubjectAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		e, stop := started(t, Options{Source: node, Set: parsed(t, fairRules), Outputs: []Output{out}})
		defer stop()
		node.put(t, labeled("hog", 8000))
		out.take()
		node.put(t, labeled("victim", 1))
		if got := out.take(); !strings.Contains(got, "Evade firing victim") {
			t.Errorf("got %q, want the alert of the victim at once", got)
		}
		// Each rule that fails has an alert of its own, which names it.
		failing := map[string]bool{}
		for _, a := range e.Alerts() {
			if a.Rule == ruleFails.Name {
				failing[a.Labels["rule"]] = true
			}
		}
		if !failing["Evade"] || !failing["Div"] || len(failing) != 2 {
			t.Errorf("alerts about failing rules: %v", failing)
		}
	})
}

// What an alert says is of now, not of when it began.
func TestAnnotations_AreOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newLive()
		e, stop := started(t, Options{Source: node, Set: parsed(t, fairRules)})
		defer stop()
		node.put(t, phase("victim", "Pending"))
		node.put(t, phase("victim", "Running"))
		for _, a := range e.Alerts() {
			if a.Rule == "Evade" && a.Annotations["summary"] != "victim is Running" {
				t.Errorf("got %q", a.Annotations["summary"])
			}
		}
	})
}

// troubled is an output whose receiver takes nothing.
type troubled struct{ sink }

func (*troubled) Trouble() string { return "171 wait: x509: certificate signed by unknown authority" }

// What is broken in alerting is a problem of the node.
func TestProblems_OfAlertingItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newLive()
		e, stop := started(t, Options{Source: node, Set: parsed(t, fairRules), Outputs: []Output{&troubled{sink{name: "am", began: time.Now()}}}})
		defer stop()
		node.put(t, phase("web", "Running"))
		_ = e.ReloadWith(func() (*ruleset.Set, error) {
			return nil, rulefile.Mistakes{{File: "rules.yaml", Line: 7, Column: 3, Message: "no such field"}}
		})
		got := strings.Join(view.DescribeNode(view.Sources{Source: node, Alerts: e}).Problems, "\n")
		for _, want := range []string{"rules.yaml:7:3: no such field", "alert rule Div cannot be evaluated", "alerts do not reach am: 171 wait: x509"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
		e.Reload(parsed(t, fairRules))
		if got := strings.Join(e.Problems(), "\n"); strings.Contains(got, "no such field") {
			t.Errorf("got %s", got)
		}
	})
}
