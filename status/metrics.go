package status

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/statusd/statusd/internal/podrules"
)

// metrics has names that an operator of kubelets recognizes. Without a Registerer
// the metrics are kept but not exported.
type metrics struct {
	syncDuration  prometheus.Histogram
	requests      *prometheus.CounterVec
	retries       *prometheus.CounterVec
	refused       *prometheus.CounterVec
	reconciles    *prometheus.CounterVec
	ended         *prometheus.CounterVec
	changes       prometheus.Counter
	coalesced     prometheus.Counter
	noops         prometheus.Counter
	fights        prometheus.Counter
	throttled     prometheus.Counter
	journalErrors prometheus.Counter
	overruled     prometheus.Counter
	refusedFields *prometheus.CounterVec
	limit         prometheus.Gauge
	inFlight      prometheus.Gauge
	queued        [background + 1]prometheus.Observer // by urgency
	queuedVec     *prometheus.HistogramVec
	parts         []*gaugePart // of gauges that managers share
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "statusd_" + name, Help: help})
	}
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "statusd_" + name, Help: help}, labels)
	}
	m := &metrics{
		syncDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "statusd_pod_status_sync_duration_seconds",
			Help:    "Time from the first change that the API server had not accepted until the server accepted it.",
			Buckets: []float64{0.010, 0.050, 0.100, 0.500, 1, 5, 10, 20, 30, 45, 60},
		}),
		requests:      vector("pod_status_requests_total", "Requests to the API server, by verb and result.", "verb", "result"),
		retries:       vector("pod_status_retries_total", "Tries that failed and are repeated, by reason.", "reason"),
		refused:       vector("pod_status_refused_total", "Reported statuses that were refused, by what was wrong: container, phase or status.", "kind"),
		reconciles:    vector("pod_status_reconciles_total", "Turns for pods whose API status differed: observed on the watch, found by the full pass, and rewritten in fact.", "cause"),
		ended:         vector("terminated_containers_total", "Containers that have ended, by type, exit code and reason; exit codes beyond 255 and reasons that Kubernetes does not use are other.", "container_type", "exit_code", "reason"),
		changes:       counter("pod_status_changes_total", "Changes stored."),
		coalesced:     counter("pod_status_coalesced_changes_total", "Changes that went out together with a later one."),
		noops:         counter("pod_status_noop_writes_total", "Changes that needed no request, since the API said so already."),
		fights:        counter("pod_status_convergence_fights_total", "Writes of an unchanged status that another writer keeps changing back."),
		throttled:     counter("pod_status_throttled_seconds_total", "Time in which work waited for the request budget or for a pause that the API server asked for."),
		journalErrors: counter("journal_write_errors_total", "Writes to the journal that failed."),
		overruled:     counter("pod_status_overruled_total", "Statuses that the API server stored differently from what was sent."),
		refusedFields: vector("pod_status_refused_fields_total", "Fields that the API server has refused, so that the rest was sent without them, by field.", "field"),
	}
	m.limit = prometheus.NewGauge(prometheus.GaugeOpts{Name: "statusd_pod_status_concurrency_limit",
		Help: "Requests that may be in flight at once, as found to pay, without the slots kept for withdrawals."})
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{Name: "statusd_pod_status_requests_in_flight",
		Help: "Turns of pods in progress, each with at most one request in flight."})
	queued := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "statusd_pod_status_queue_duration_seconds",
		Help:    "Time that a pod waited for its turn, by the class of its change, without back-off.",
		Buckets: []float64{0.001, 0.005, 0.010, 0.050, 0.100, 0.500, 1, 5, 10, 30}}, []string{"class"})
	for u := range m.queued {
		m.queued[u] = queued.WithLabelValues(urgency(u).String())
	}
	m.queuedVec = queued
	return m
}

// register puts the metrics into a registry. Managers that share one share the metrics too:
// what a registry has already is used.
func (m *metrics) register(registerer prometheus.Registerer, c *cache, gauges []*sharedGauge) error {
	if registerer == nil {
		return nil
	}
	var problems []error
	shared := func(collector prometheus.Collector) prometheus.Collector {
		err := registerer.Register(collector)
		if existing := (prometheus.AlreadyRegisteredError{}); errors.As(err, &existing) {
			return existing.ExistingCollector
		}
		problems = append(problems, err)
		return collector
	}
	use(shared, &m.syncDuration)
	for _, vector := range []**prometheus.CounterVec{&m.requests, &m.retries, &m.refused, &m.reconciles, &m.ended, &m.refusedFields} {
		use(shared, vector)
	}
	for _, counter := range []*prometheus.Counter{&m.changes, &m.coalesced, &m.noops, &m.fights, &m.throttled, &m.journalErrors, &m.overruled} {
		use(shared, counter)
	}
	use(shared, &m.limit)
	use(shared, &m.inFlight)
	use(shared, &m.queuedVec)
	for u := range m.queued {
		m.queued[u] = m.queuedVec.WithLabelValues(urgency(u).String())
	}
	for _, gauge := range append(gauges, pendingGauges(c)...) {
		p := &gaugePart{read: gauge.read}
		use(shared, &gauge)
		p.gauge = gauge
		m.parts = append(m.parts, p)
	}
	m.join()
	return errors.Join(problems...)
}

// use replaces a metric by the registered metric with the same name.
func use[T prometheus.Collector](shared func(prometheus.Collector) prometheus.Collector, metric *T) {
	if existing, ok := shared(*metric).(T); ok {
		*metric = existing
	}
}

// accepted counts changes that the API server has taken with one request.
func (m *metrics) accepted(a acceptance, wrote bool) {
	if a.changes == 0 {
		return
	}
	m.syncDuration.Observe(time.Since(a.since).Seconds())
	m.coalesced.Add(float64(a.changes - 1))
	if !wrote {
		m.noops.Inc()
	}
}

func (m *metrics) terminated(c podrules.TerminatedContainer) {
	exitCode, reason := "other", "other"
	if c.ExitCode >= 0 && c.ExitCode <= 255 {
		exitCode = strconv.Itoa(int(c.ExitCode))
	}
	if endReasons[c.Reason] {
		reason = c.Reason
	}
	m.ended.WithLabelValues(string(c.Kind), exitCode, reason).Inc()
}

// endReasons are the reasons that become the value of a label. The backend of a reporter may have one of
// its own for each container.
var endReasons = map[string]bool{
	"": true, "Completed": true, "Error": true, "OOMKilled": true, "ContainerCannotRun": true, "StartError": true,
	"DeadlineExceeded": true, "Evicted": true, "Unknown": true, "ContainerStatusUnknown": true, "RestartingAllContainers": true,
}

// join adds this manager to the gauges that managers share, leave takes it out of them.
func (m *metrics) join() {
	for _, p := range m.parts {
		p.gauge.add(p)
	}
}

func (m *metrics) leave() {
	for _, p := range m.parts {
		p.gauge.remove(p)
	}
}
