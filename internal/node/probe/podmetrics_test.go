package probe

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// Names and labels are those of the kubelet at /metrics/probes. A pod that is gone leaves no series behind.
func TestProbesAreCountedByContainerUntilThePodIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		w := newWorld(t, func(o *Options) { o.PodRegisterer = registry })
		w.answer("web", runtime.ReadinessProbe, "failure")
		w.add("web", withHandlers(v1.Container{ReadinessProbe: every(1), LivenessProbe: every(1)}))
		w.run("web", "web-1")
		w.wait(2*time.Second + time.Millisecond)
		const of = ` container="app" namespace="default" pod="web"`
		if got, want := series(t, registry, "prober_probe_total"), []string{
			of + ` pod_uid="web" probe_type="Liveness" result="successful" 3`,
			of + ` pod_uid="web" probe_type="Readiness" result="failed" 3`,
		}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := series(t, registry, "prober_probe_duration_seconds"), []string{of + ` probe_type="Liveness" 0`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want those of probes that succeeded: %q", got, want)
		}
		w.prober.RemovePod("web")
		synctest.Wait()
		for _, name := range []string{"prober_probe_total", "prober_probe_duration_seconds"} {
			if left := series(t, registry, name); len(left) > 0 {
				t.Errorf("%s of a pod that is gone: %v", name, left)
			}
		}
	})
}

// series are those of a metric, each with its labels and, of a counter, its value.
func series(t *testing.T, registry *prometheus.Registry, name string) (lines []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.Metric {
			line := ""
			for _, label := range m.Label {
				line += fmt.Sprintf(" %s=%q", label.GetName(), label.GetValue())
			}
			lines = append(lines, fmt.Sprint(line, " ", m.GetCounter().GetValue()))
		}
	}
	return lines
}
