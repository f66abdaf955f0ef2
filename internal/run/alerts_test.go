package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/alert/actions"
	"github.com/statusd/statusd/internal/alert/alertsetup"
	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/history"
)

// ruleFile writes rules, each of them a name and what follows in YAML, and returns the path.
func ruleFile(t *testing.T, path string, list ...string) string {
	t.Helper()
	text := "apiVersion: statusd/v1alpha1\nkind: Rules\ngroups:\n  - name: test\n    rules:\n"
	for _, r := range list {
		text += "      - " + r + "\n"
	}
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil { // never half a file
		t.Fatal(err)
	}
	return path
}

const podRuns = `{name: PodRuns, expr: 'pod.phase == "Running"', severity: warning, annotations: {summary: "{{ pod.name }} runs"}}`

func TestConfigsWithWrongRulesAreRefused(t *testing.T) {
	good := ruleFile(t, filepath.Join(t.TempDir(), "good.yaml"), podRuns)
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Rules.Files = []string{"/does/not/exist"} }, "/does/not/exist"},
		{func(c *Config) {
			c.Rules.Files = []string{ruleFile(t, filepath.Join(t.TempDir(), "bad.yaml"), `{name: Bad, expr: 'pod.phase ==', severity: info}`)}
		}, "bad.yaml:6:"},
		{func(c *Config) { c.Outputs.Alertmanagers = []endpoint.Options{{URL: "http://x"}} }, "no rules"},
		{func(c *Config) {
			c.Rules.Files, c.Outputs.Alertmanagers = []string{good}, []endpoint.Options{{URL: "x"}}
		}, "outputs.alertmanagers[0]"},
		{func(c *Config) {
			c.Rules.Files, c.Rules.Actions = []string{good}, map[ruleset.ActionKind]actions.Limits{"reboot": {}}
		}, "rules.actions: reboot"},
		{func(c *Config) {
			c.Rules.Files, c.Outputs.Webhooks = []string{good}, []alertsetup.Webhook{{Name: "w", Options: endpoint.Options{URL: "http://x"}, SecretFile: "/does/not/exist"}}
		}, "outputs.webhooks[0]"},
		{func(c *Config) { c.Rules.Files, c.Rules.ExternalURL = []string{good}, "here" }, "rules.externalURL"},
	} {
		c := Default()
		test.change(&c)
		if err := CheckConfig(c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want an error with %q", err, test.want)
		}
	}
	c := Default()
	c.Rules.Files, c.Rules.Pack = []string{good}, true
	if err := CheckConfig(c); err != nil {
		t.Errorf("good rules: %v", err)
	}
}

func TestARuleRestartsAContainer(t *testing.T) {
	c := testConfig(t, "restarts")
	c.Rules.Files = []string{ruleFile(t, filepath.Join(t.TempDir(), "rules.yaml"),
		`{name: FirstRun, scope: container, expr: 'container.state == "running" && container.restarts == 0', severity: info, actions: [{action: restartContainer}], annotations: {summary: "it is the first run"}}`)}
	c.Rules.Actions = map[ruleset.ActionKind]actions.Limits{ruleset.ActionRestartContainer: {}}
	a, _ := started(t, c)
	action := awaitRecord(t, a, "default", "sleeper-restarts", func(r history.Record) bool { return r.Kind == history.KindAction })
	if action.Reason != "FirstRun" || action.To != actions.Done || !strings.Contains(action.Message, "it is the first run") {
		t.Errorf("the history has %+v", action)
	}
	awaitRecord(t, a, "default", "sleeper-restarts", func(r history.Record) bool { return r.Kind == history.KindRestart })
	alerts := a.console.Alerts().Alerts()
	if len(alerts) != 1 || len(alerts[0].Actions) != 1 || alerts[0].Actions[0].Result != actions.Done {
		t.Errorf("alerts: %+v", alerts)
	}
}
