package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/test/e2e/report"
	"github.com/statusd/statusd/test/progress"
)

func TestReasons_CanBeRead(t *testing.T) {
	if _, err := report.ParseReasons(reasonsText); err != nil {
		t.Error(err)
	}
}

func TestAgents(t *testing.T) {
	for _, agent := range []string{"stock", "kubelet", "statusd"} {
		if program, err := agentProgram(agent); err != nil || program == "" {
			t.Errorf("agent %s: %q, %v; want its program", agent, program, err)
		}
	}
	if _, err := agentProgram("other"); err == nil || !strings.Contains(err.Error(), "unknown agent") {
		t.Errorf("another agent: %v, want an error", err)
	}
}

// A failure without a reason makes the run fail, one with a reason does not, and two agents are compared by their last runs.
func TestJudge_WantsAReasonForEachFailure(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(agent, states string) {
		var specs []string
		for i, state := range strings.Fields(states) {
			specs = append(specs, `{"LeafNodeType": "It", "LeafNodeText": "spec `+string(rune('a'+i))+`", "State": "`+state+`"}`)
		}
		dir := filepath.Join(results, agent)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte(`[{"SpecReports": [`+strings.Join(specs, ",")+`]}]`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("stock", "passed failed")
	write("kubelet", "passed passed")
	write("none", "")
	reasons := report.Reasons{{Text: "no IPv6", Specs: []string{"spec b"}}}
	var out strings.Builder
	if err := judge("stock", reasons, &out); err != nil {
		t.Errorf("a failure with a reason: %v", err)
	}
	if err := judge("stock", nil, &out); err == nil || !strings.Contains(err.Error(), "1 specs failed without a reason") {
		t.Errorf("a failure without a reason: %v, want an error", err)
	}
	if err := judge("none", nil, &out); err == nil {
		t.Error("a run without specs is no error")
	}
	if table, err := os.ReadFile(filepath.Join(results, "stock", "table.md")); err != nil || !strings.Contains(string(table), "spec b") {
		t.Errorf("the table of stock is %q, %v", table, err)
	}
	if err := compare(&out, [2]string{"stock", "kubelet"}); err == nil || !strings.Contains(err.Error(), "1 specs ended differently") {
		t.Errorf("compare: %v, want an error", err)
	}
	if err := compare(&out, [2]string{"stock", "stock"}); err != nil {
		t.Errorf("compare an agent with itself: %v", err)
	}
}

func TestCounter_CountsWhatGinkgoWrites(t *testing.T) {
	c := newCounter(progress.On(&strings.Builder{}))
	for _, piece := range []string{"Running in parallel across 10 processes\nWill run 23", "6 of 7512 specs\n••", "•\n------\n• [FAIL", "ED] [3.2 seconds]\n[sig-node]\n", "S••"} {
		if n, err := c.Write([]byte(piece)); err != nil || n != len(piece) {
			t.Fatalf("Write(%q) = %d, %v", piece, n, err)
		}
	}
	if c.total != 236 || c.ran != 6 || c.failed != 1 {
		t.Errorf("%d of %d specs, %d failed; want 6 of 236, 1", c.ran, c.total, c.failed)
	}
}

func TestFresh(t *testing.T) {
	dir := t.TempDir()
	program, source := filepath.Join(dir, "program"), filepath.Join(dir, "go.mod")
	if err := os.WriteFile(source, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if fresh(program, source) {
		t.Error("a program that is missing is fresh")
	}
	if err := os.WriteFile(program, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for age, want := range map[time.Duration]bool{time.Hour: false, -time.Hour: true} {
		at := time.Now().Add(-age)
		if err := os.Chtimes(program, at, at); err != nil {
			t.Fatal(err)
		}
		if got := fresh(program, source); got != want {
			t.Errorf("a program %s older than its source: fresh = %t, want %t", age, got, want)
		}
	}
}

func TestVersionFlags(t *testing.T) {
	got := versionFlags("v1.36.3")
	for _, want := range []string{"-X k8s.io/component-base/version.gitMinor=36", "-X k8s.io/client-go/pkg/version.gitVersion=v1.36.3"} {
		if !strings.Contains(got, want) {
			t.Errorf("flags %q have no %q", got, want)
		}
	}
}
