package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/internal/view"
)

const failedRule = `apiVersion: statusd/v1alpha1
kind: Rules
groups:
  - name: test
    rules:
      - name: PodFailed
        expr: pod.state == "Failed"
        severity: critical
        annotations: {summary: "{{ pod.name }} has failed", action: Read its log.}
      - name: PodOld
        expr: pod.state == "Ready"
        for: 24h
        severity: info
`

// rowWhen follows the stream that the page reads until a pod's row is as it should be.
func rowWhen(t *testing.T, client *queryapi.Client, name string, right func(view.PodSummary) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last view.PodSummary
	for event, err := range client.Watch(ctx, "", "") {
		if err != nil {
			t.Fatalf("the row of %s stays %+v: %v", name, last, err)
		}
		var row view.PodSummary
		if event.Kind != "pod" || json.Unmarshal(event.Data, &row) != nil || row.Name != name {
			continue
		}
		if last = row; right(row) {
			return
		}
	}
}

// An alert of a running node is the same over HTTP, in the stream that the page reads, in the details of its pod and of the
// node, and on the command line. A silence that the command line adds takes it from the counts, and its end gives it back.
func TestAllAnswersAgreeOnAlerts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	writeFile(t, file, failedRule)
	node, config := settledNode(t, func(c *run.Config) { c.Rules.Files = []string{file} })
	client, err := queryapi.NewClient("http://" + node.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	socket := config.QuerySocketPath()
	run := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		if err := command(append(args, "--socket", socket), &out); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out.String()
	}
	check := func(silenced bool) {
		t.Helper()
		want := 1
		if silenced {
			want = 0
		}
		rowWhen(t, client, "failed-n1", func(row view.PodSummary) bool { return row.Alerts == want })
		list, err := client.Alerts(t.Context())
		i := slices.IndexFunc(list.Items, func(a alert.Alert) bool { return a.Rule == "PodFailed" })
		if err != nil || i != 0 || list.Items[0].State != alert.Firing || (list.Items[0].Silenced != "") != silenced {
			t.Fatalf("over HTTP there are %+v, %v", list.Items, err)
		}
		alert := list.Items[0]
		detail, err := client.Pod(t.Context(), "default", "failed-n1")
		if err != nil || len(detail.AlertDetails) != 1 || detail.AlertDetails[0].Fingerprint != alert.Fingerprint || detail.Alerts != want {
			t.Errorf("the pod has %+v, %v", detail.AlertDetails, err)
		}
		overview, err := client.Node(t.Context())
		if err != nil || overview.Firing != want || len(overview.Alerts) != 1 || overview.Alerts[0].Fingerprint != alert.Fingerprint {
			t.Errorf("the node has %d firing, %+v, %v", overview.Firing, overview.Alerts, err)
		}
		var printed queryapi.AlertList
		if err := json.Unmarshal([]byte(run("alerts", "-o", "json")), &printed); err != nil || len(printed.Items) != 1 || printed.Items[0].Fingerprint != alert.Fingerprint {
			t.Errorf("the command prints %+v, %v", printed, err)
		}
		if table := run("alerts"); !strings.Contains(table, "failed-n1 has failed") || strings.Contains(table, "(silenced)") != silenced {
			t.Errorf("the command prints\n%s", table)
		}
	}
	rowWhen(t, client, "failed-n1", func(row view.PodSummary) bool { return row.State == "Failed" })
	check(false)
	id := strings.TrimSpace(run("silence", "add", "PodFailed", "pod=failed-n1", "--for", time.Hour.String(), "--comment", "known"))
	check(true)
	if list := run("silence", "list"); !strings.Contains(list, id) || !strings.Contains(list, "alertname=PodFailed pod=failed-n1") {
		t.Errorf("the silences are\n%s", list)
	}
	run("silence", "expire", id)
	check(false)
}
