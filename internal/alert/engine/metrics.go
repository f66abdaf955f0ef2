package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/statusd/statusd/internal/alert"
)

// metrics are what the engine counts.
type metrics struct {
	turns                   prometheus.Counter
	faults                  *prometheus.CounterVec
	dropped                 *prometheus.CounterVec
	duration                prometheus.Histogram
	reloaded, reloadedAt    prometheus.Gauge
	rules, stateBytes       prometheus.Gauge
	stateErrors, notifyings prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		turns:       prometheus.NewCounter(prometheus.CounterOpts{Name: "statusd_rules_looks_total", Help: "Evaluations of all rules of a pod, or of the node."}),
		faults:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "statusd_rule_eval_errors_total", Help: "Evaluations of a rule that failed, by reason: error, overrun."}, []string{"rule", "reason"}),
		dropped:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "statusd_alerts_dropped_total", Help: "Alerts that were not made, by reason."}, []string{"reason"}),
		duration:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: "statusd_rules_look_duration_seconds", Help: "How long a look takes.", Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .05, .25, 1}}),
		reloaded:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "statusd_rules_config_last_reload_success", Help: "Whether the last reload of the rules succeeded."}),
		reloadedAt:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "statusd_rules_config_last_reload_success_timestamp_seconds", Help: "When rules were last loaded with success."}),
		rules:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "statusd_rules_loaded", Help: "Rules in force."}),
		stateBytes:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "statusd_alerts_state_bytes", Help: "Size of the file with the state of alerts."}),
		stateErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "statusd_alerts_state_errors_total", Help: "Failed writes of the state of alerts, and lines that could not be read."}),
		notifyings:  prometheus.NewCounter(prometheus.CounterOpts{Name: "statusd_alerts_notifications_total", Help: "Alerts passed on to outputs, once per output."}),
	}
	if registerer != nil {
		registerer.MustRegister(m.turns, m.faults, m.dropped, m.duration, m.reloaded, m.reloadedAt, m.rules, m.stateBytes, m.stateErrors, m.notifyings)
	}
	return m
}

// collector counts the alerts at each scrape, so that a change costs nothing.
type collector struct{ engine *Engine }

var alertsDesc = prometheus.NewDesc("statusd_alerts", "Alerts by rule, severity and state: pending or firing.", []string{"rule", "severity", "state"}, nil)

// Describe and Collect implement [prometheus.Collector].
func (c collector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- alertsDesc }

func (c collector) Collect(metrics chan<- prometheus.Metric) {
	type series struct{ rule, severity, state string }
	counts := map[series]int{}
	for _, a := range c.engine.Alerts() {
		if a.State != alert.Resolved {
			counts[series{a.Rule, a.Severity, string(a.State)}]++
		}
	}
	for s, n := range counts {
		metrics <- prometheus.MustNewConstMetric(alertsDesc, prometheus.GaugeValue, float64(n), s.rule, s.severity, s.state)
	}
}
