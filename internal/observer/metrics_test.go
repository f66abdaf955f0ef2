package observer

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/metricstest"
)

// newRegistered makes an observer that is not run, and returns its metrics.
func newRegistered(t *testing.T) *metricstest.Registry {
	t.Helper()
	w, r := newWorld(t), metricstest.NewRegistry()
	config := Default()
	config.NodeName, config.StateDir, config.HealthzBindAddress, config.QuerySocket = testNode, t.TempDir(), "", "none"
	config.Guard.Enabled, config.Rules.Pack = true, true
	o, err := New(config, Options{
		Logger: slog.New(slog.DiscardHandler), client: w.client, registerer: r,
		NewSides: func(*rest.Config, Changed) (Sides, error) { return w.sides(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// Each metric of an observer has a row in docs/reference/metrics.md, and each row of statusd observe is of a metric.
func TestTableOfObserve_EqualsTheMetrics(t *testing.T) {
	newRegistered(t).CheckTable(t, "../../docs/reference/metrics.md", func(section string) bool { return section == "Observe" })
}

// Names and help follow the conventions of Prometheus.
func TestMetricsHaveNoLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(newRegistered(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMetricsHaveLowCardinality(t *testing.T) { newRegistered(t).CheckLabels(t) }
