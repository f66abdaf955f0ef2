//go:build real

package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

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

func TestRulesAreValid(t *testing.T) {
	for file := range ruleFiles {
		promtool(t, "check", "rules", file)
	}
}

// Each alert fires on a node in trouble, and none on a node in order.
func TestRulesFireWhenTheyShould(t *testing.T) {
	for _, tests := range ruleFiles {
		promtool(t, "test", "rules", tests)
	}
}

// Prometheus can parse every expression of the dashboard, as a rule.
func TestExpressionsOfTheDashboardParse(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var list []rule
	values := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$node", ".*", "$cluster", ".*")
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
