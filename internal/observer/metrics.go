package observer

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/process"
)

// metrics are the counters of the observer. docs/reference/metrics.md describes all of them.
type metrics struct {
	detected, resolved *prometheus.CounterVec
	repaired           *prometheus.CounterVec
	requests           *prometheus.CounterVec
	audits             prometheus.Histogram
}

func newMetrics() *metrics {
	m := &metrics{
		detected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_drift_detected_total", Help: "Differences that became drift, by kind."}, []string{"kind"}),
		resolved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_drift_resolved_total", Help: "Drift that is over, by kind."}, []string{"kind"}),
		repaired: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_drift_repaired_total", Help: "Repairs of drift, by kind and by what became of them: repaired, dry-run, skipped, failed."}, []string{"kind", "result"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusd_observe_api_requests_total", Help: "Requests to the API server, by method; WATCH is the begin of a watch."}, []string{"verb"}),
		audits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "statusd_audit_duration_seconds", Help: "How long an audit of all pods takes.", Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8)}),
	}
	for _, kind := range audit.Kinds() { // so that a rate is there before the first one
		m.detected.WithLabelValues(string(kind))
		m.resolved.WithLabelValues(string(kind))
	}
	return m
}

// count takes what became of differences.
func (m *metrics) count(list []step) {
	for i := range list {
		s := &list[i]
		switch {
		case s.to == drifted:
			m.detected.WithLabelValues(string(s.Kind)).Inc()
		case s.from == drifted && s.to == resolved:
			m.resolved.WithLabelValues(string(s.Kind)).Inc()
		}
	}
}

// counted counts the requests of a client.
func (m *metrics) counted(next http.RoundTripper) http.RoundTripper { return counted{next, m} }

type counted struct {
	http.RoundTripper
	*metrics
}

// WrappedRoundTripper lets client-go close idle connections.
func (c counted) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	verb := request.Method
	if request.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	c.requests.WithLabelValues(verb).Inc()
	return c.RoundTripper.RoundTrip(request)
}

// register adds all metrics of the process.
func (o *Observer) register() {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	m := o.metrics
	process.RegisterBuild(o.registerer, o.options.Version)
	o.registerer.MustRegister(
		gauge("statusd_pods", "Pods of this node.", func() float64 { return float64(len(o.view.Load().pods)) }),
		m.detected, m.resolved, m.repaired, m.requests, m.audits,
		newFindings(o.view.Load, o.sides.Runtime.Calls),
	)
	o.registerer.MustRegister(o.events.sender.Collectors()...)
}

// findings shows what the last audit has found.
type findings struct {
	view                                     func() *view
	criCalls                                 func() map[string]uint64
	open, answers, median, p99, bound, calls *prometheus.Desc
}

func newFindings(view func() *view, criCalls func() map[string]uint64) *findings {
	describe := func(name, help, label string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{label}, nil)
	}
	return &findings{
		view: view, criCalls: criCalls,
		calls:   describe("statusd_observe_cri_calls_total", "Requests to the container runtime, by name.", "verb"),
		open:    describe("statusd_drift_open", "Drift that there is now, by kind.", "kind"),
		answers: describe("statusd_side_answers", "1 if the side answers: api, kubelet, runtime, machine.", "side"),
		median:  describe("statusd_propagation_median_seconds", "How long news of a side takes, the median of what was measured.", "side"),
		p99:     describe("statusd_propagation_p99_seconds", "How long news of a side takes, the 99th percentile of what was measured.", "side"),
		bound:   describe("statusd_propagation_bound_seconds", "How long a difference of a side may last before it is drift.", "side"),
	}
}

// Describe is for the registry.
func (f *findings) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.open, f.answers, f.median, f.p99, f.bound, f.calls} {
		descriptions <- d
	}
}

// Collect is for the registry.
func (f *findings) Collect(values chan<- prometheus.Metric) {
	v := f.view()
	gauge := func(d *prometheus.Desc, value float64, label string) {
		values <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, label)
	}
	for call, n := range f.criCalls() {
		values <- prometheus.MustNewConstMetric(f.calls, prometheus.CounterValue, float64(n), call)
	}
	open := v.open()
	for _, kind := range audit.Kinds() {
		gauge(f.open, float64(open[kind]), string(kind))
	}
	for _, side := range sideOrder {
		answers := 0.0
		if v.report.Sides[side].Known() {
			answers = 1
		}
		gauge(f.answers, answers, string(side))
		if p, measured := v.report.Propagation[side]; measured {
			gauge(f.median, p.Median.Seconds(), string(side))
			gauge(f.p99, p.P99.Seconds(), string(side))
			gauge(f.bound, p.Bound.Seconds(), string(side))
		}
	}
}
