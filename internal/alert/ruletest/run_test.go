package ruletest

import (
	"strings"
	"testing"
	"testing/fstest"
)

const rulesForTests = `
apiVersion: statusd/v1alpha1
kind: Rules
groups:
  - name: tests
    rules:
      - {name: Failed, expr: pod.phase == "Failed", for: 10s, severity: warning, labels: {team: "{{ pod.name }}s"}, annotations: {summary: "{{ pod.name }} has failed"}}
      - {name: Kept, expr: pod.phase == "Unknown", keepFiringFor: 20s, severity: info}
`

const headOfTests = `apiVersion: statusd/v1alpha1
kind: RuleTests
rules: [rules.yaml]
tests:
  - name: t
    timeline:
      - {at: 0s, pod: {metadata: {name: a}, status: {phase: Failed}}}
      - {at: 0s, pod: {metadata: {name: b}, status: {phase: Failed}}}
`

func TestTestsOfRules(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"the rule after its alerts", headOfTests + "    expect:\n      - {alerts: [{pod: a}, {pod: b}], rule: Failed, at: 10s}\n", ""},
		{"one that says little before one that says more", headOfTests + "    expect:\n      - {at: 10s, rule: Failed, alerts: [{}, {pod: a}]}\n", ""},
		{"two that one alert cannot both be", headOfTests + "    expect:\n      - {at: 10s, rule: Failed, alerts: [{pod: a}, {pod: a}]}\n",
			"rules_test.yaml:10: at 10s:\n  - Failed firing of a\n  + Failed firing of default/b"},
		{"a rule that there is not", headOfTests + "    expect:\n      - {at: 1s, rule: Faild, alerts: []}\n", "rules_test.yaml:10: there is no rule Faild (did you mean Failed?)"},
		{"a clock that is set ahead", headOfTests + "      - {at: 5s, clock: 1h}\n    expect:\n      - {at: 10s, rule: Failed, alerts: [{pod: a}, {pod: b}]}\n", ""},
		{"a clock that is set back", headOfTests + "      - {at: 5s, clock: -3h}\n    expect:\n      - {at: 9s, rule: Failed, alerts: []}\n      - {at: 10s, rule: Failed, alerts: [{pod: a}, {pod: b}]}\n", ""},
		{"nothing", "", "rules_test.yaml:1:1: the file is empty; want apiVersion: statusd/v1alpha1, kind: RuleTests, tests"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := fstest.MapFS{"rules.yaml": {Data: []byte(rulesForTests)}, "rules_test.yaml": {Data: []byte(test.text)}}
			results, err := RunFS(files, "rules_test.yaml")
			got := ""
			if err != nil {
				got = err.Error()
			}
			for _, r := range results {
				got += strings.Join(r.Failures, "\n")
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Expressions read what a pod has in its metadata and its spec, also what the query API does not serve.
func TestRulesReadMetadata(t *testing.T) {
	rules := "apiVersion: statusd/v1alpha1\nkind: Rules\ngroups:\n  - name: g\n    rules:\n" +
		"      - {name: Owned, expr: 'pod.annotations[\"example.com/owner\"] == \"shop\"', severity: info}\n" +
		"      - {name: Kept, expr: '\"example.com/volume\" in pod.finalizers', severity: info}\n" +
		"      - {name: Important, expr: 'pod.priorityClass == \"high\"', severity: info}\n"
	tests := "apiVersion: statusd/v1alpha1\nkind: RuleTests\nrules: [rules.yaml]\ntests:\n  - name: t\n    timeline:\n" +
		"      - {at: 0s, pod: {metadata: {name: a, annotations: {example.com/owner: shop}, finalizers: [example.com/volume]}, spec: {priorityClassName: high}}}\n" +
		"      - {at: 0s, pod: {metadata: {name: b}}}\n" +
		"    expect:\n      - {at: 1s, alerts: [{rule: Owned, pod: a}, {rule: Kept, pod: a}, {rule: Important, pod: a}]}\n"
	results, err := RunFS(fstest.MapFS{"rules.yaml": {Data: []byte(rules)}, "rules_test.yaml": {Data: []byte(tests)}}, "rules_test.yaml")
	if err != nil || len(results) != 1 {
		t.Fatalf("got %v, %v", results, err)
	}
	for _, failure := range results[0].Failures {
		t.Error(failure)
	}
}
