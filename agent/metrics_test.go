package agent

import (
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// registered is a registry that remembers the metrics of statusd in it, also vectors without a value.
type registered struct {
	*prometheus.Registry
	rows map[string]string // by name: the first columns of the table in docs/metrics.md
}

var description = regexp.MustCompile(`fqName: "(.*?)", help: "(.*?)", (?:unit: ".*?", )?constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}`)

func (r *registered) Register(c prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 100)
	c.Describe(descriptions)
	close(descriptions)
	for d := range descriptions {
		found := description.FindStringSubmatch(d.String())
		name, help, labels := found[1], found[2], found[4]
		if !strings.HasPrefix(name, "statusd_") {
			continue // of Go and of the process
		}
		for _, constant := range strings.Split(found[3], ",") {
			if label, _, ok := strings.Cut(constant, "="); ok {
				labels += "," + label
			}
		}
		labels = strings.Trim(labels, ",")
		if labels != "" {
			labels = "`" + strings.ReplaceAll(labels, ",", "`, `") + "`"
		}
		r.rows[name] = fmt.Sprintf("| `%s` | %s | %s | %s |", name, kindOf(c, name), labels, help)
	}
	return r.Registry.Register(c)
}

func (r *registered) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

func kindOf(c prometheus.Collector, name string) string {
	switch c.(type) {
	case prometheus.Histogram, *prometheus.HistogramVec:
		return "histogram"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// newRegistered makes an agent of a cluster that is not run, and returns its metrics.
func newRegistered(t *testing.T, node string) *registered {
	t.Helper()
	server := shared.Server(t)
	c := testConfig(t, node)
	c.Rules.Pack = true
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig(node); err != nil {
		t.Fatal(err)
	}
	r := &registered{Registry: prometheus.NewRegistry(), rows: map[string]string{}}
	a, err := New(c, withProcesses(c, Options{Logger: slog.New(slog.DiscardHandler), registerer: r}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// Each metric of an agent has a row in docs/metrics.md with its type, its labels, its meaning and what to do,
// and each row is of a metric.
func TestTheTableOfMetricsIsTrue(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := newRegistered(t, "tabulated").rows
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(line, "| `statusd_")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut("statusd_"+name, "`")
		want, known := rows[name]
		delete(rows, name)
		switch advice := strings.Trim(strings.TrimPrefix(line, want), " |\n"); {
		case !known:
			t.Errorf("docs/metrics.md has %s, which is not registered", name)
		case !strings.HasPrefix(line, want):
			t.Errorf("docs/metrics.md has\n%s, want\n%s WHAT TO DO |", line, want)
		case advice == "":
			t.Errorf("docs/metrics.md does not say what to do about %s", name)
		}
	}
	for _, row := range rows {
		t.Errorf("docs/metrics.md lacks the row\n%s WHAT TO DO |", row)
	}
}

// Names and help follow the conventions of Prometheus.
func TestMetricsHaveNoLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(newRegistered(t, "linted"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// No metric has a label whose values users choose: names of pods, containers, images. Rules and outputs are
// those of the operator's config.
func TestMetricsHaveLowCardinality(t *testing.T) {
	allowed := []string{"action", "output", "rule", "severity", "class", "condition", "container_type", "exit_code", "field", "hook", "kind", "cause", "phase", "probe", "reason", "result", "signal", "stage", "state", "verb", "version"}
	for name, row := range newRegistered(t, "narrow").rows {
		labels := strings.Split(row, "|")[3]
		for label := range strings.SplitSeq(strings.NewReplacer("`", "", " ", "").Replace(labels), ",") {
			if label != "" && !slices.Contains(allowed, label) {
				t.Errorf("%s has the label %s", name, label)
			}
		}
	}
}

var eventful = &v1.Pod{
	ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1"},
	Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
}

// Metrics are gathered while pods run, probes answer and events come.
func TestMetricsUnderLoad(t *testing.T) {
	a, _ := run(t, testConfig(t, "gathered"))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 25 {
				if _, err := a.metrics.Gather(); err != nil {
					t.Error(err)
				}
				a.events.Event(eventful, "main", "Normal", "Started", "")
			}
		})
	}
	awaitReady(t, a, "sleeper-gathered")
	group.Wait()
	_, text := get(t, a, "/metrics")
	for _, want := range []string{`statusd_pods_by_phase{phase="Running"} 1`, `statusd_containers{state="running"} 1`, "statusd_pods_ready 1",
		`statusd_container_starts_total{result="success"} 1`, `statusd_pod_workers{stage="syncing"} 1`} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s in the metrics", want)
		}
	}
}
