package report

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aRun has a result of each kind, one of each chart, and both kinds of verdict.
func aRun() *Run {
	return &Run{
		Machine: Machine{CPU: "a processor", Cores: 2, MemoryGiB: 8, OS: "linux/amd64", Go: "go1.26", Kubernetes: "v1.36.3", Commit: "abc", Date: "2026-01-01", Rounds: 3},
		Results: []Result{
			{Name: "burst", Unit: "updates/s", Statusd: 425, Upstream: 100, Ceiling: new(500.0), Throughput: new(480.0),
				Plain: map[string]float64{"fixed 4": 420, "fixed 8": 500}},
			{Name: "burst_request", Unit: "ms", Statusd: 5, Upstream: 2, Plain: map[string]float64{"fixed 4": 4, "fixed 8": 8}},
			{Name: "rtt50", Unit: "updates/s", Statusd: 400, Upstream: 10, Ceiling: new(500.0), Throughput: new(400.0), Plain: map[string]float64{"fixed 8": 401}},
			{Name: "rtt50_request", Unit: "ms", Statusd: 60, Upstream: 50, Plain: map[string]float64{"fixed 8": 59}},
			{Name: "churn", Unit: "ms, p99", Statusd: 40, Upstream: 2000},
			{Name: "set_unchanged", Unit: "ns", Statusd: 500, Upstream: 20000},
			{Name: "set_unchanged_allocs", Unit: "allocs", Statusd: 0, Upstream: 75},
			{Name: "growth_100", Unit: "µs", Statusd: 10, Upstream: 170},
			{Name: "growth_100000", Unit: "µs", Statusd: 16, Upstream: 66000},
			{Name: "allocation_10", Unit: "µs", Statusd: 600, Upstream: 600},
			{Name: "memory_per_pod", Unit: "bytes", Statusd: 1200, Upstream: 1300},
		},
	}
}

func TestAdvantageIsHowManyTimesBetter(t *testing.T) {
	for _, c := range []struct {
		result Result
		want   float64
	}{
		{Result{Unit: "updates/s", Statusd: 300, Upstream: 100}, 3},
		{Result{Unit: "ms", Statusd: 100, Upstream: 300}, 3},
		{Result{Unit: "ms, p99", Statusd: 100, Upstream: 300}, 3},
		{Result{Unit: "allocs", Statusd: 0, Upstream: 0}, 1},
	} {
		if got := c.result.Advantage(); got != c.want {
			t.Errorf("advantage of %+v: got %v, want %v", c.result, got, c.want)
		}
	}
}

func TestVerdictsSayWhatIsMetAndMissed(t *testing.T) {
	run := aRun()
	for name, want := range map[string]string{
		"burst":                "≥ 3 ×: met; no fixed number better in both: met; PreferThroughput ≥ 0.95 × ceiling: met",
		"rtt50":                "no fixed number better in both: missed; PreferThroughput ≥ 0.95 × ceiling: missed; ≥ 45 ×: missed",
		"set_unchanged":        "≥ 15 ×: met",
		"set_unchanged_allocs": "0: met",
		"growth_100000":        "≤ 1.5 × growth_100: missed",
		"growth_100":           "",
		"allocation_10":        "no slower: met",
		"memory_per_pod":       "no more: met",
	} {
		result, ok := run.find(name)
		if !ok {
			t.Fatalf("no result %s", name)
		}
		if got := strings.Join(run.verdicts(result), "; "); got != want {
			t.Errorf("verdicts of %s: got %q, want %q", name, got, want)
		}
	}
}

func TestNumbersReadWell(t *testing.T) {
	for _, c := range []struct {
		value float64
		want  string
	}{
		{0, "0"}, {2, "2"}, {1.004, "1.00"}, {12.34, "12.3"}, {123.4, "123"}, {1234567.8, "1,234,568"}, {-1234, "-1,234"}, {1000, "1,000"},
	} {
		if got := number(c.value); got != c.want {
			t.Errorf("number(%v): got %q, want %q", c.value, got, c.want)
		}
	}
	if got := Quantity(40, "ms, p99"); got != "40 ms" {
		t.Errorf("quantity of a percentile: got %q, want %q", got, "40 ms")
	}
}

func TestEveryBarHasADescription(t *testing.T) {
	for _, b := range bars {
		if describe(b.name) == "" {
			t.Errorf("nothing says what %s measures", b.name)
		}
	}
}

func TestFilesHoldTheRun(t *testing.T) {
	dir := t.TempDir()
	run := aRun()
	jsonPath, docs := filepath.Join(dir, "build", "bench.json"), filepath.Join(dir, "docs")
	if err := WriteFiles(run, jsonPath, docs); err != nil {
		t.Fatal(err)
	}
	wantForm(t, read(t, jsonPath))
	page := read(t, filepath.Join(docs, "benchmarks.md"))
	for _, r := range run.Results {
		if !strings.Contains(page, "| `"+r.Name+"` |") {
			t.Errorf("the page has no row for %s", r.Name)
		}
	}
	for _, c := range charts(run) {
		if !strings.Contains(page, "(benchmarks/"+c.file+")") {
			t.Errorf("the page does not show %s", c.file)
		}
		wantDrawing(t, c.file, read(t, filepath.Join(docs, "benchmarks", c.file)))
	}
}

// wantForm checks the form of the JSON that programs read.
func wantForm(t *testing.T, encoded string) {
	t.Helper()
	var got struct {
		Machine map[string]any
		Results []map[string]any
	}
	if err := json.Unmarshal([]byte(encoded), &got); err != nil {
		t.Fatal(err)
	}
	first, second := got.Results[0], got.Results[4]
	if first["name"] != "burst" || first["unit"] != "updates/s" || first["statusd"] != 425.0 || first["upstream"] != 100.0 || first["ceiling"] != 500.0 {
		t.Errorf("first result: got %v", first)
	}
	if _, ok := second["ceiling"]; ok {
		t.Errorf("a result without a ceiling has one: %v", second)
	}
	if len(got.Machine) == 0 {
		t.Error("the machine is missing")
	}
}

// wantDrawing checks that a chart is well-formed, for light and dark pages, and that
// nothing lies outside of it.
func wantDrawing(t *testing.T, name, svg string) {
	t.Helper()
	if !strings.Contains(svg, "prefers-color-scheme: dark") {
		t.Errorf("%s has no colors for dark pages", name)
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Contains(svg, `="-`) {
		t.Errorf("%s has a coordinate that cannot be drawn:\n%s", name, svg)
	}
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%s is not well-formed: %v", name, err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestARunGoesOnWhereTheLastOneHasStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parts.json")
	first := &Run{Machine: Machine{Commit: "a", Rounds: 3, Date: "2026-01-01"}}
	if err := first.Continue(path); err != nil || len(first.Results) > 0 {
		t.Fatalf("got %v, %v of nothing", first.Results, err)
	}
	first.Results = []Result{{Name: "burst", Unit: "updates/s", Statusd: 1}}
	if err := first.Save(path); err != nil {
		t.Fatal(err)
	}
	next := &Run{Machine: Machine{Commit: "a", Rounds: 3, Date: "2026-01-02"}}
	if err := next.Continue(path); err != nil || !next.Has("burst") || next.Has("patch") {
		t.Errorf("got %+v, %v, want the result of the same commit", next.Results, err)
	}
	other := &Run{Machine: Machine{Commit: "b", Rounds: 3}}
	if err := other.Continue(path); err != nil || other.Has("burst") {
		t.Errorf("got %+v, %v, want nothing of another commit", other.Results, err)
	}
}
