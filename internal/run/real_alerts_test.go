//go:build real

package run

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/test/alertmanagertest"
)

// alerted runs an Alertmanager and returns its address and what it notifies about.
func alerted(t *testing.T) (url string, sink *alertmanagertest.Sink) {
	t.Helper()
	sink = alertmanagertest.NewSink()
	server := httptest.NewServer(sink)
	t.Cleanup(server.Close)
	p, err := alertmanagertest.Start(t.TempDir(), alertmanagertest.Config(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p.URL, sink
}

// awaitAlert waits until the newest notification about a rule has a status.
func awaitAlert(t *testing.T, sink *alertmanagertest.Sink, rule, status string) {
	t.Helper()
	byRule := func(labels map[string]string) string { return labels["alertname"] }
	err := sink.Wait(t.Context(), func(messages []alertmanagertest.Message) bool {
		return alertmanagertest.Last(messages, byRule)[rule] == status
	})
	if err != nil {
		t.Fatalf("%s is not %s: %v", rule, status, alertmanagertest.Last(sink.Messages(), byRule))
	}
}

func TestAlertsReachAlertmanagerAcrossARestartAndReloads(t *testing.T) {
	url, sink := alerted(t)
	c := testConfig(t, "alerts")
	c.Rules.Files = []string{ruleFile(t, filepath.Join(t.TempDir(), "rules.yaml"), podRuns)}
	c.Outputs.Alertmanagers = []endpoint.Options{{URL: url}}
	a, stop := started(t, c)
	awaitAlert(t, sink, "PodRuns", "firing")
	if alerts := a.console.Alerts().Alerts(); len(alerts) != 1 || alerts[0].State != alert.Firing || alerts[0].Annotations["summary"] != "sleeper-alerts runs" {
		t.Errorf("alerts: %+v", alerts)
	}

	// Another rule in the file fires without a restart; a mistake in it changes nothing.
	ruleFile(t, c.Rules.Files[0], podRuns, `{name: PodIsStatic, expr: 'pod.name.startsWith("sleeper")', severity: info}`)
	awaitAlert(t, sink, "PodIsStatic", "firing")
	ruleFile(t, c.Rules.Files[0], podRuns)
	awaitAlert(t, sink, "PodIsStatic", "resolved")
	stop()

	// The pod goes while no agent runs.
	if err := os.Remove(filepath.Join(c.Manifests, "sleeper.yaml")); err != nil {
		t.Fatal(err)
	}
	started(t, c)
	awaitAlert(t, sink, "PodRuns", "resolved")
}

// An alert about a static pod that goes on across a restart does not end in between: before the first report of the pod
// nothing is known of it.
func TestARestartEndsNoAlertOfAStaticPod(t *testing.T) {
	url, sink := alerted(t)
	c := testConfig(t, "lasts")
	c.Rules.Files = []string{ruleFile(t, filepath.Join(t.TempDir(), "rules.yaml"), podRuns)}
	c.Outputs.Alertmanagers = []endpoint.Options{{URL: url}}
	a, stop := started(t, c)
	awaitAlert(t, sink, "PodRuns", "firing")
	before := a.console.Alerts().Alerts()
	stop()
	ruleFile(t, c.Rules.Files[0], podRuns, `{name: RunsAgain, expr: 'pod.phase == "Running"', severity: info}`)
	a, _ = started(t, c)
	awaitAlert(t, sink, "RunsAgain", "firing")
	after := slices.DeleteFunc(slices.Clone(a.console.Alerts().Alerts()), func(x alert.Alert) bool { return x.Rule != "PodRuns" })
	if len(before) != 1 || len(after) != 1 || !after[0].Since.Equal(before[0].Since) {
		t.Errorf("before the restart: %+v\nafter it: %+v", before, after)
	}
}

// examplePods are what the rules of examples/alerts are about, with files in place of %[1]s: one that dies once, one
// that flaps and one whose init container waits, until there is a file.
const examplePods = `
apiVersion: v1
kind: Pod
metadata: {name: dies}
spec: {containers: [{name: main, image: host, command: [sh, -c, "test -e %[1]s/died || { touch %[1]s/died; exit 1; }; exec sleep 1000000"]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: flaps}
spec:
  containers:
    - name: main
      image: host
      command: [sleep, "1000000"]
      readinessProbe:
        exec: {command: [sh, -c, "echo >> %[1]s/probes; n=$(wc -l < %[1]s/probes); test -e %[1]s/go || test $((n %% 2)) -eq 1"]}
        periodSeconds: 1
        failureThreshold: 1
---
apiVersion: v1
kind: Pod
metadata: {name: stuck}
spec:
  initContainers: [{name: waits, image: host, command: [sh, -c, "until test -e %[1]s/go; do sleep 0.1; done"]}]
  containers: [{name: main, image: host, command: [sleep, "1000000"]}]
`

// The rules of make run fire and resolve, and Alertmanager, the query API and the engine know the same alerts.
func TestTheExamplesOfAlertsFireAndResolve(t *testing.T) {
	url, sink := alerted(t)
	text, err := os.ReadFile("../../examples/alerts/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	short := strings.NewReplacer(`"30s"`, `"6s"`, `"1m"`, `"10s"`, `"10s"`, `"1s"`).Replace(string(text)) // a test has less time
	if err := os.WriteFile(file, []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t, "examples")
	c.Rules.Pack, c.Rules.Files, c.Outputs.Alertmanagers = true, []string{file}, []endpoint.Options{{URL: url}}
	for i, pod := range strings.Split(fmt.Sprintf(examplePods, dir), "---") {
		if err := os.WriteFile(filepath.Join(c.Manifests, fmt.Sprintf("%d.yaml", i)), []byte(pod), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a, _ := started(t, c)
	awaitAlert(t, sink, "PodStuck", "firing")
	awaitAlert(t, sink, "PodFlaps", "firing")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rules := []string{"ContainerDied", "PodFlaps", "PodStuck"}
	for _, rule := range rules {
		awaitAlert(t, sink, rule, "resolved")
	}
	client, err := queryapi.NewClient("http://" + a.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list, err := client.Alerts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		known := func(labels map[string]string) bool {
			return slices.ContainsFunc(list.Items, func(a alert.Alert) bool {
				return a.Rule == rule && a.State == alert.Resolved && maps.Equal(a.Labels, labels)
			})
		}
		for _, message := range sink.Messages() {
			for _, alert := range message.Alerts {
				if alert.Labels["alertname"] == rule && !known(alert.Labels) {
					t.Errorf("Alertmanager has %v, and the query API does not: %+v", alert.Labels, list.Items)
				}
			}
		}
	}
}
