package guard

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are computed from the report at each scrape.
type metrics struct {
	report   func() Report
	healthy  *prometheus.Desc
	verdict  *prometheus.Desc
	restarts *prometheus.CounterVec
}

func newMetrics(report func() Report) *metrics {
	return &metrics{
		report: report,
		healthy: prometheus.NewDesc("statusd_kubelet_healthy",
			"Whether a check of the kubelet succeeds, by check. A check without a result is missing.", []string{"check"}, nil),
		verdict: prometheus.NewDesc("statusd_kubelet_verdict",
			"1 for the verdict about the kubelet that holds, 0 for the others.", []string{"health"}, nil),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_kubelet_restarts_total", Help: "Restarts that the guard has made, by reason and result.",
		}, []string{"reason", "result"}),
	}
}

// Describe implements [prometheus.Collector].
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.healthy
	out <- m.verdict
	m.restarts.Describe(out)
}

// Collect implements [prometheus.Collector].
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	report := m.report()
	for _, item := range report.Evidence {
		if !item.Unknown {
			out <- prometheus.MustNewConstMetric(m.healthy, prometheus.GaugeValue, bit(item.OK), item.Name)
		}
	}
	for _, health := range Healths() {
		out <- prometheus.MustNewConstMetric(m.verdict, prometheus.GaugeValue, bit(report.Health == health), string(health))
	}
	m.restarts.Collect(out)
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
