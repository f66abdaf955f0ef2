package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
)

const root = "../../.."

type rules struct {
	Groups []struct {
		Rules []struct{ Alert, Expr string }
	}
}

// ruleFiles are the files of rules, with their tests.
var ruleFiles = map[string]string{"rules.yaml": "rules_test.yaml", "observe.yaml": "observe_test.yaml"}

func readRules(t *testing.T, file string) rules {
	t.Helper()
	var read rules
	if err := yaml.Unmarshal(readFile(t, "deploy/prometheus/"+file), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestEachAlertIsTested(t *testing.T) {
	for file, test := range ruleFiles {
		tests := string(readFile(t, "deploy/prometheus/"+test))
		for _, group := range readRules(t, file).Groups {
			for _, rule := range group.Rules {
				if rule.Alert != "" && !strings.Contains(tests, fmt.Sprintf("alertname=%q", rule.Alert)) {
					t.Errorf("%s does not let %s fire", test, rule.Alert)
				}
			}
		}
	}
}

// Each kind of drift has an alert.
func TestEachKindOfDriftHasAnAlert(t *testing.T) {
	rules, tests := string(readFile(t, "deploy/prometheus/observe.yaml")), string(readFile(t, "deploy/prometheus/observe_test.yaml"))
	for _, kind := range audit.Kinds() {
		if !strings.Contains(rules, string(kind)) {
			t.Errorf("observe.yaml has no alert for %s", kind)
		}
		if !strings.Contains(tests, fmt.Sprintf(`kind="%s", severity=`, kind)) {
			t.Errorf("observe_test.yaml lets no alert fire for %s", kind)
		}
	}
	for _, side := range []audit.Side{audit.SideAPI, audit.SideKubelet, audit.SideRuntime, audit.SideMachine} {
		if !strings.Contains(tests, fmt.Sprintf(`alertname="StatusdSideSilent", side="%s"`, side)) {
			t.Errorf("observe_test.yaml lets no alert fire for side %s", side)
		}
	}
}

// Each verdict that is not healthy has an alert, and so has each result of a restart, also of the first one: its counter begins with it.
func TestEachVerdictAndRestartHasAnAlert(t *testing.T) {
	tests := string(readFile(t, "deploy/prometheus/observe_test.yaml"))
	verdicts := guard.Healths()
	if len(verdicts) < 4 {
		t.Fatalf("the guard has the verdicts %v", verdicts)
	}
	for _, health := range verdicts {
		fires := strings.Contains(tests, fmt.Sprintf(`health=%q, severity=`, health))
		if want := health != guard.Healthy; fires != want {
			t.Errorf("observe_test.yaml: an alert fires for %s: %t, want %t", health, fires, want)
		}
	}
	for alert, result := range map[string]string{"StatusdKubeletRestarted": "success", "StatusdKubeletRestartsFail": "error"} {
		for _, series := range []string{fmt.Sprintf(`result=%q}', values: 0x40 1x20`, result), fmt.Sprintf(`result=%q}', values: _x40 1x20`, result)} {
			if !strings.Contains(tests, series) || !strings.Contains(tests, fmt.Sprintf(`alertname=%q, reason=`, alert)) {
				t.Errorf("observe_test.yaml does not let %s fire for %s", alert, series)
			}
		}
	}
}

// Whatever rules and dashboard ask for is a metric of docs/reference/metrics.md.
func TestQueries_NameMetricsThatExist(t *testing.T) {
	described := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(statusd_\\w+)` \\| (\\w+)").FindAllStringSubmatch(string(readFile(t, "docs/reference/metrics.md")), -1) {
		described[row[1]] = true
		if row[2] == "histogram" {
			described[row[1]+"_bucket"] = true
		}
	}
	asked := dashboardExpressions(t)
	for file := range ruleFiles {
		for _, group := range readRules(t, file).Groups {
			for i, rule := range group.Rules {
				asked[fmt.Sprint(file, i, rule.Alert)] = rule.Expr
			}
		}
	}
	name := regexp.MustCompile(`(?:^|[^:\w])(statusd_\w+)`) // a recording rule has a colon before and after it
	for where, expression := range asked {
		for _, found := range name.FindAllStringSubmatch(expression, -1) {
			if metric := found[1]; !described[metric] {
				t.Errorf("%s asks for %s, which docs/reference/metrics.md does not have", where, metric)
			}
		}
	}
}

// dashboardExpressions are those of the panels, by file, title and letter.
func dashboardExpressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range []string{"statusd.json", "observe.json", "fleet.json"} {
		expressionsOf(t, file, found)
	}
	if len(found) == 0 {
		t.Fatal("the dashboards have no expressions")
	}
	return found
}

func expressionsOf(t *testing.T, file string, found map[string]string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(readFile(t, "deploy/grafana/"+file), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			found[file+": "+panel.Title+" "+target.RefID] = target.Expr
		}
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
