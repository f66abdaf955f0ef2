//go:build real

package run

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/test/metricstest"
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
	a, err := New(c, withProcesses(c, agent.Options{Logger: slog.New(slog.DiscardHandler), Metrics: r}))
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

// Each metric of an agent has a row in docs/reference/metrics.md with its type, its labels, its meaning and what to do,
// and each row that is not of statusd observe is of a metric.
func TestTableOfMetrics_EqualsTheMetrics(t *testing.T) {
	newRegistered(t, "tabulated").CheckTable(t, "../../docs/reference/metrics.md", func(section string) bool { return section != "Observe" })
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
