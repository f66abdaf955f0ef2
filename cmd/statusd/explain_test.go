package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/explain"
)

const crashing = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, creationTimestamp: "2026-03-14T10:00:00Z"}
spec: {nodeName: n1, restartPolicy: Always, containers: [{name: db, image: db}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-03-14T10:32:05Z"}]
  containerStatuses:
  - {name: db, image: db, ready: false, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}},
     lastState: {terminated: {exitCode: 3, reason: Error, message: no such table, finishedAt: "2026-03-14T10:32:04Z"}}}
`

func explained(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := command(append([]string{"explain"}, args...), &out)
	return out.String(), err
}

func TestExplainAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	writeFile(t, file, crashing)
	for output, want := range map[string]string{
		"text": `container "db" is not ready: exit code 3: no such table · 4 restarts`,
		"json": `"code": "CrashLoopBackOff"`,
		"yaml": "state: NotReady",
	} {
		if got, err := explained(t, "-f", file, "-o", output); err != nil || !strings.Contains(got, want) {
			t.Errorf("-o %s prints %q (%v), want %q in it", output, got, err, want)
		}
	}
}

// The log comes below an empty line, and is shown line by line.
func TestExplain_PrintsTheLog(t *testing.T) {
	why := explain.Explanation{Namespace: "shop", Name: "db", State: explain.StateReady,
		Logs: []explain.Log{{Container: "db", Lines: []string{"starting\tnow", "\x1b[2J"}}}}
	var out strings.Builder
	if err := (&explainCommand{}).print(&out, why); err != nil {
		t.Fatal(err)
	}
	const want = "Pod shop/db is Ready.\n\nThe end of the log of container \"db\":\n  | starting\tnow\n  | \ufffd[2J\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestExplain_ObjectOfAnotherKind_IsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"list":    {"apiVersion: v1\nkind: List\nitems: []\n", "no pod in the file"},
		"garbage": {"{{{", "yaml"},
		"empty":   {"", "no pod in the file"},
		"no name": {"apiVersion: v1\nkind: Pod\n", "metadata.name"},
		"large":   {strings.Repeat("#", maxPodFile+1), "more than 64 MiB"},
	} {
		file := filepath.Join(dir, name)
		writeFile(t, file, c.text)
		if got, err := explained(t, "-f", file); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %q, %v, want an error with %q and the file", name, got, err, c.want)
		}
	}
	if _, err := explained(t, "-f", filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	for _, args := range [][]string{{}, {"web", "-f", "x"}, {"web", "-o", "xml"}, {"a", "b"}} {
		if _, err := explained(t, args...); !errors.Is(err, errUsage) {
			t.Errorf("explain %v: got %v, want a hint at the usage", args, err)
		}
	}
}
