package probe

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/statusd/statusd/runtime"
)

// metrics count probes. Without a Registerer they are kept but not exported.
type metrics struct {
	results  *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_probes_total", Help: "Probes, by kind and result; unknown ones could not be carried out.",
		}, []string{"probe", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "statusd_probe_duration_seconds", Help: "Time that probes took, by kind.",
			Buckets: []float64{0.001, 0.005, 0.010, 0.050, 0.100, 0.500, 1, 5, 10},
		}, []string{"probe"}),
	}
	for _, kind := range []runtime.ProbeKind{runtime.StartupProbe, runtime.ReadinessProbe, runtime.LivenessProbe} {
		m.duration.WithLabelValues(string(kind))
		for _, r := range []result{success, failure, unknown} {
			m.results.WithLabelValues(string(kind), r.String()) // so that a rate is there before the first one
		}
	}
	return m
}

func (m *metrics) register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	return errors.Join(registerer.Register(m.results), registerer.Register(m.duration))
}

func (m *metrics) probed(kind runtime.ProbeKind, r result, took time.Duration) {
	m.results.WithLabelValues(string(kind), r.String()).Inc()
	m.duration.WithLabelValues(string(kind)).Observe(took.Seconds())
}
