package logs

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	problems    *prometheus.CounterVec
	lines, lost *prometheus.CounterVec
	lostBytes   *prometheus.CounterVec
	behind      *prometheus.GaugeVec
}

func newMetrics() *metrics {
	return &metrics{
		problems:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "statusd_log_problems_total", Help: "Lines of logs that mean a problem, by origin and reason."}, []string{"origin", "reason"}),
		lines:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "statusd_log_lines_total", Help: "Lines that were read, by log."}, []string{"log"}),
		lost:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "statusd_log_lines_lost_total", Help: "Lines that were gone before they could be read, by log."}, []string{"log"}),
		lostBytes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "statusd_log_lost_bytes_total", Help: "Bytes of logs that were removed before they could be read, by log."}, []string{"log"}),
		behind:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "statusd_log_behind_bytes", Help: "How much of a log is left to be read."}, []string{"log"}),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.problems, m.lines, m.lost, m.lostBytes, m.behind} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *metrics) read(log string, b batch) {
	m.lines.WithLabelValues(log).Add(float64(b.count))
	m.lost.WithLabelValues(log).Add(float64(b.lost))
	m.lostBytes.WithLabelValues(log).Add(float64(b.lostBytes))
	m.behind.WithLabelValues(log).Set(float64(b.behind))
}

func (m *metrics) found(f found) { m.problems.WithLabelValues(string(f.Origin), f.Reason).Inc() }
