package worker

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what workers do. Without a Registerer they are kept but not exported.
type metrics struct {
	turns  prometheus.Histogram
	starts *prometheus.CounterVec
	hooks  *prometheus.CounterVec
}

// Results of starts and hooks, as labels.
const (
	resultSuccess = "success"
	resultFailure = "failure"
)

func newMetrics() *metrics {
	m := &metrics{
		turns: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "statusd_pod_worker_duration_seconds", Help: "Time that a worker took for one look at its pod and what was due.",
			Buckets: []float64{0.001, 0.005, 0.010, 0.050, 0.100, 0.500, 1, 5, 10, 30},
		}),
		starts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_container_starts_total", Help: "Starts of containers, by whether the runtime could start them.",
		}, []string{"result"}),
		hooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_lifecycle_hooks_total", Help: "Hooks of containers that have ended, by hook and result.",
		}, []string{"hook", "result"}),
	}
	for _, result := range []string{resultSuccess, resultFailure} { // so that a rate is there before the first one
		m.starts.WithLabelValues(result)
		m.hooks.WithLabelValues(hookName(true), result)
		m.hooks.WithLabelValues(hookName(false), result)
	}
	return m
}

func (m *metrics) register(registerer prometheus.Registerer, w *Workers) error {
	if registerer == nil {
		return nil
	}
	return errors.Join(registerer.Register(m.turns), registerer.Register(m.starts), registerer.Register(m.hooks),
		registerer.Register(&stages{w}))
}

func (m *metrics) started(err error) { m.starts.WithLabelValues(resultOf(err)).Inc() }

func (m *metrics) hook(post bool, err error) {
	m.hooks.WithLabelValues(hookName(post), resultOf(err)).Inc()
}

func resultOf(err error) string {
	if err != nil {
		return resultFailure
	}
	return resultSuccess
}

func hookName(post bool) string {
	if post {
		return "postStart"
	}
	return "preStop"
}

// stages counts the workers by how far their pods are.
type stages struct{ w *Workers }

var stagesDescription = prometheus.NewDesc("statusd_pod_workers", "Pods that have a worker, by stage: syncing, terminating, finished.", []string{"stage"}, nil)

// Describe is for the registry.
func (s *stages) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- stagesDescription }

// Collect is for the registry.
func (s *stages) Collect(values chan<- prometheus.Metric) {
	count := map[string]float64{"syncing": 0, "terminating": 0, "finished": 0}
	s.w.mu.Lock()
	for _, p := range s.w.pods {
		switch p.inbox.stage {
		case syncing:
			count["syncing"]++
		case terminating:
			count["terminating"]++
		default:
			count["finished"]++
		}
	}
	s.w.mu.Unlock()
	for stage, n := range count {
		values <- prometheus.MustNewConstMetric(stagesDescription, prometheus.GaugeValue, n, stage)
	}
}
