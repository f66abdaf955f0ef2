package agent

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/metricstest"
)

// newRegistered makes an agent of a cluster that is not run, and returns its metrics.
func newRegistered(t *testing.T, node string) *metricstest.Registry {
	t.Helper()
	server := shared.Server(t)
	c := testConfig(t, node)
	c.Rules.Pack = true
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig(node); err != nil {
		t.Fatal(err)
	}
	r := metricstest.NewRegistry()
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
// and each row that is not of statusd observe is of a metric.
func TestTheTableOfMetricsIsTrue(t *testing.T) {
	newRegistered(t, "tabulated").CheckTable(t, "../docs/metrics.md", func(section string) bool { return section != "Observe" })
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

// No metric has a label whose values users choose: names of pods, containers, images.
func TestMetricsHaveLowCardinality(t *testing.T) { newRegistered(t, "narrow").CheckLabels(t) }

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
