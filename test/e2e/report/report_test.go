package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/test/e2e/report"
)

// ginkgo is a report as Ginkgo writes it: a set-up, specs in each state, and one that was not selected.
const ginkgo = `[{"SuiteSucceeded": false, "RunTime": 61000000000, "SpecialSuiteFailureReasons": ["Suite Timeout Elapsed"], "SpecReports": [
	{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
	{"LeafNodeType": "ReportAfterSuite", "LeafNodeText": "Kubernetes e2e JUnit report", "State": "failed", "Failure": {"Message": "disk full"}},
	{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "starts", "State": "passed"},
	{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "creates a dummy device", "State": "failed", "Failure": {"Message": "exit status 2\nmore"}},
	{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "is interrupted", "State": "interrupted"},
	{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "needs two nodes", "State": "skipped", "Failure": {"Message": "requires 2 nodes"}},
	{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "waits", "State": "pending"},
	{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-cli] Kubectl"], "LeafNodeText": "is not selected", "State": "skipped"}
]}]`

const reasons = `
# What the machine lacks.
the kernel has no dummy device
	[sig-node] Pods creates a dummy device
	privileged
one node
	between two nodes
`

func read(t *testing.T, content string) *report.Run {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	run, err := report.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func parse(t *testing.T, text string) report.Reasons {
	t.Helper()
	parsed, err := report.ParseReasons(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestRead_TellsSelectedSpecsFromOthers(t *testing.T) {
	run := read(t, ginkgo)
	if len(run.Specs) != 4 || run.Count(report.Passed) != 1 || run.Count(report.Failed) != 2 || run.Count(report.Skipped) != 1 {
		t.Errorf("read %d specs, %d passed, %d failed, %d skipped; want 4, 1, 2, 1: %v", len(run.Specs), run.Count(report.Passed), run.Count(report.Failed), run.Count(report.Skipped), run.Specs)
	}
	if got := strings.Join(run.Problems, "; "); got != "Suite Timeout Elapsed; ReportAfterSuite Kubernetes e2e JUnit report: disk full" {
		t.Errorf("problems of the suite: %q", got)
	}
}

func TestReasons_ExplainSpecsByPartsOfTheirNames(t *testing.T) {
	parsed := parse(t, reasons)
	for name, want := range map[string]string{
		"[sig-node] Pods creates a dummy device": "the kernel has no dummy device",
		"a privileged pod":                       "the kernel has no dummy device",
		"traffic between two nodes":              "one node",
		"[sig-node] Pods starts":                 "",
	} {
		if got := parsed.Of(name); got != want {
			t.Errorf("the reason of %q is %q, want %q", name, got, want)
		}
	}
	unexplained := parsed.Unexplained(read(t, ginkgo))
	if len(unexplained) != 1 || unexplained[0].Name != "[sig-node] Pods is interrupted" {
		t.Errorf("unexplained: %v, want the interrupted spec alone", unexplained)
	}
}

func TestReasons_MustHaveSpecs(t *testing.T) {
	for _, text := range []string{"\t[sig-node] Pods\n", "no IPv6\n", "no IPv6\none node\n\ttwo nodes\n"} {
		if parsed, err := report.ParseReasons(text); err == nil {
			t.Errorf("ParseReasons(%q) = %v, want an error", text, parsed)
		}
	}
}

func TestWriteTable(t *testing.T) {
	var b strings.Builder
	report.WriteTable(&b, "stock", read(t, ginkgo), parse(t, reasons))
	for _, want := range []string{
		"| stock | 4 | 1 | 2 | 1 | 1 | 1m1s |\n",
		"| [sig-node] Pods creates a dummy device | the kernel has no dummy device |\n",
		"| [sig-node] Pods is interrupted | **unexplained**: interrupted |\n",
		"| 1 | requires 2 nodes |\n",
		"The suite itself failed: Suite Timeout Elapsed\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, b.String())
		}
	}
}

func TestCompare(t *testing.T) {
	first, second := read(t, ginkgo), read(t, strings.NewReplacer(
		`"State": "passed"},
	{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "creates`, `"State": "failed", "Failure": {"Message": "not | ready"}},
	{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "creates`,
		"needs two nodes", "needs a GPU").Replace(ginkgo))
	var b strings.Builder
	got := report.WriteComparison(&b, [2]string{"stock", "kubelet"}, [2]*report.Run{first, second})
	if len(got) != 3 {
		t.Errorf("%d differences, want 3: %v", len(got), got)
	}
	for _, want := range []string{
		"| stock | 4 | 1 | 2 | 1 | 1m1s |\n| kubelet | 4 | 0 | 3 | 1 | 1m1s |\n",
		`| [sig-node] Pods starts | passed | failed: not \| ready |` + "\n",
		"| [sig-node] Pods needs a GPU | not run | skipped: requires 2 nodes |\n",
		"| [sig-node] Pods needs two nodes | skipped: requires 2 nodes | not run |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the comparison has no %q:\n%s", want, b.String())
		}
	}
	b.Reset()
	if got := report.WriteComparison(&b, [2]string{"stock", "kubelet"}, [2]*report.Run{first, first}); len(got) != 0 || !strings.Contains(b.String(), "Each spec ended the same on both.") {
		t.Errorf("a run differs from itself: %v\n%s", got, b.String())
	}
}
