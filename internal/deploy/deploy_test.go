package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

// promtool runs promtool in the directory of the rules.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing; it is in Debian's package prometheus: apt-get install prometheus")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Join(root, "deploy", "prometheus")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRulesAreValid(t *testing.T) { promtool(t, "check", "rules", "rules.yaml") }

// Each alert fires on a node in trouble, and none on a node in order.
func TestRulesFireWhenTheyShould(t *testing.T) { promtool(t, "test", "rules", "rules_test.yaml") }

type rules struct {
	Groups []struct {
		Rules []struct{ Alert, Expr string }
	}
}

func readRules(t *testing.T) rules {
	t.Helper()
	var read rules
	if err := yaml.Unmarshal(readFile(t, "deploy/prometheus/rules.yaml"), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestEachAlertIsTested(t *testing.T) {
	tests := string(readFile(t, "deploy/prometheus/rules_test.yaml"))
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if !strings.Contains(tests, fmt.Sprintf("alertname=%q", rule.Alert)) {
				t.Errorf("rules_test.yaml does not let %s fire", rule.Alert)
			}
		}
	}
}

// Whatever rules and dashboard ask for is a metric of docs/metrics.md.
func TestMetricsThatAreAskedForExist(t *testing.T) {
	described := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(statusd_\\w+)` \\| (\\w+)").FindAllStringSubmatch(string(readFile(t, "docs/metrics.md")), -1) {
		described[row[1]] = true
		if row[2] == "histogram" {
			described[row[1]+"_bucket"] = true
		}
	}
	asked := dashboardExpressions(t)
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			asked[rule.Alert] = rule.Expr
		}
	}
	name := regexp.MustCompile(`statusd_\w+`)
	for where, expression := range asked {
		for _, metric := range name.FindAllString(expression, -1) {
			if !described[metric] {
				t.Errorf("%s asks for %s, which docs/metrics.md does not have", where, metric)
			}
		}
	}
}

// Prometheus can parse every expression of the dashboard, as a rule.
func TestExpressionsOfTheDashboardParse(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var list []rule
	values := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")
	for _, expression := range dashboardExpressions(t) {
		list = append(list, rule{fmt.Sprintf("dashboard:expression:%d", len(list)), values.Replace(expression)})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": list}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// dashboardExpressions are those of the panels, by file, title and letter.
func dashboardExpressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range []string{"statusd.json", "observe.json"} {
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
