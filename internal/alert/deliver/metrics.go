package deliver

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Why deliveries failed, as the label of the metric.
const (
	failedTimeout     = "timeout"
	failedUnreachable = "unreachable" // no connection
	failedAnswer      = "answer"      // the receiver has answered with an error
	failedRefused     = "refused"
)

// Metrics count the results of deliveries, by output. Make them with [NewMetrics]; nil counts
// nothing.
type Metrics struct {
	sent, failed, dropped *prometheus.CounterVec

	mu      sync.Mutex // guards waiting
	waiting map[string]func() int
	length  *prometheus.Desc
}

// NewMetrics makes the metrics of all queues of a process.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &Metrics{
		sent:    counter("statusd_notifications_sent_total", "States of alerts that an output has delivered.", "output"),
		failed:  counter("statusd_notifications_failed_total", "States of alerts that an output could not deliver, by reason; all but those refused are tried again.", "output", "reason"),
		dropped: counter("statusd_notifications_dropped_total", "States of alerts that an output will not deliver, by reason.", "output", "reason"),
		length:  prometheus.NewDesc("statusd_notifications_waiting", "Alerts that wait to be delivered by an output.", []string{"output"}, nil),
		waiting: map[string]func() int{},
	}
}

// Describe is for the registry.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	m.sent.Describe(descriptions)
	m.failed.Describe(descriptions)
	m.dropped.Describe(descriptions)
	descriptions <- m.length
}

// Collect is for the registry.
func (m *Metrics) Collect(values chan<- prometheus.Metric) {
	m.sent.Collect(values)
	m.failed.Collect(values)
	m.dropped.Collect(values)
	m.mu.Lock()
	defer m.mu.Unlock()
	for output, waiting := range m.waiting {
		values <- prometheus.MustNewConstMetric(m.length, prometheus.GaugeValue, float64(waiting()), output)
	}
}

// follow shows an output from the start, so that a rate is there before the first alert.
func (m *Metrics) follow(output string, waiting func() int) {
	if m == nil {
		return
	}
	m.send(output, 0)
	for _, reason := range []string{failedTimeout, failedUnreachable, failedAnswer, failedRefused} {
		m.fail(output, reason, 0)
	}
	for _, reason := range []string{DroppedFull, DroppedSuperseded, DroppedSilenced, DroppedRefused} {
		m.dropped.WithLabelValues(output, reason)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting[output] = waiting
}

func (m *Metrics) send(output string, alerts int) {
	if m != nil {
		m.sent.WithLabelValues(output).Add(float64(alerts))
	}
}

func (m *Metrics) fail(output, reason string, alerts int) {
	if m != nil {
		m.failed.WithLabelValues(output, reason).Add(float64(alerts))
	}
}

func (m *Metrics) drop(output, reason string) {
	if m != nil {
		m.dropped.WithLabelValues(output, reason).Inc()
	}
}

func reasonOf(err error) string {
	if refusal := (*RefusedError)(nil); errors.As(err, &refusal) {
		return failedRefused
	}
	if timeout := net.Error(nil); errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return failedTimeout
	}
	if isUnsent(err) {
		return failedUnreachable
	}
	return failedAnswer
}
