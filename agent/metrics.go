package agent

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// registerMetrics registers the metrics of the process and of the parts without metrics of their
// own. docs/reference/metrics.md describes all of them.
func (a *Agent) registerMetrics() {
	process.RegisterBuild(a.metrics, a.options.Version)
	a.metrics.MustRegister(
		gauge("statusd_pods", "Pods of this node.", func() float64 { return float64(len(a.table.All())) }),
		newPodMetrics(a.statuses),
	)
	a.metrics.MustRegister(a.events.Collectors()...)
	a.registerJournalMetrics()
	if reporter, ok := a.runtime.(runtime.ProblemReporter); ok {
		a.metrics.MustRegister(gauge("statusd_runtime_problems", "Files of the runtime that it can neither read nor remove.",
			func() float64 { return float64(len(reporter.Problems())) }))
	}
	if a.client != nil {
		a.metrics.MustRegister(
			gauge("statusd_node_lease_age_seconds", "Time since the lease of the Node was renewed; -1 if it never was.", a.leaseAge),
			gauge("statusd_node_up_to_date", "1 if the last report of the Node reached the API server.", func() float64 { return yes(a.nodeProblem() == nil) }),
			gauge("statusd_api_watch_connected", "1 if the pods of this node are listed and followed in the API.", func() float64 { return yes(a.apiProblem() == nil) }),
			gauge("statusd_pod_status_fights", "Pods whose status another writer keeps changing back.", func() float64 { return float64(len(a.manager.Fights())) }),
			gauge("statusd_mirror_pods_pending", "Static pods whose mirror pod is not as it should be yet.",
				func() float64 { return float64(len(a.mirrors.Pending())) }))
	}
	for _, kind := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
		a.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "statusd_node_pressure", Help: "1 while the node is under this pressure.", ConstLabels: prometheus.Labels{"condition": string(kind)},
		}, func() float64 { return a.pressure(kind) }))
	}
	if a.manifests != nil {
		a.metrics.MustRegister(gauge("statusd_manifest_problems", "Things wrong with the manifests now.",
			func() float64 { return float64(len(a.manifests.Problems())) }))
	}
}

func (a *Agent) registerJournalMetrics() {
	counter := func(name, help string, value func(journal.Stats) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value(a.journal.Stats())) })
	}
	a.metrics.MustRegister(
		gauge("statusd_journal_bytes", "Size of the journal.", func() float64 { return float64(a.journal.Stats().Bytes) }),
		gauge("statusd_journal_records", "Records in the journal.", func() float64 { return float64(a.journal.Stats().Records) }),
		gauge("statusd_journal_writable", "1, or 0 while the disk has taken no write since the journal was opened.",
			func() float64 { return yes(a.journal.Writable() == nil) }),
		counter("statusd_journal_writes_total", "Writes that the journal has acknowledged.", func(s journal.Stats) uint64 { return s.Writes }),
		counter("statusd_journal_commits_total", "Syncs of the journal to the disk; one serves all writes that wait.", func(s journal.Stats) uint64 { return s.Commits }),
		counter("statusd_journal_copies_total", "Copies of the whole state that the journal has written.", func(s journal.Stats) uint64 { return s.Copies }),
		counter("statusd_journal_copy_errors_total", "Copies of the whole state that failed; they are tried again.", func(s journal.Stats) uint64 { return s.FailedCopies }),
	)
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// pressure is 1 if a condition of the node is true.
func (a *Agent) pressure(kind v1.NodeConditionType) float64 {
	return yes(slices.Contains(a.evictions.Conditions(), kind))
}

// leaseAge is how old the lease of the Node is, in seconds.
func (a *Agent) leaseAge() float64 {
	renewed := a.node.LeaseRenewed()
	if renewed.IsZero() {
		return -1
	}
	return time.Since(renewed).Seconds()
}

// podMetrics counts pods and containers by their statuses.
type podMetrics struct {
	statuses   func() []v1.PodStatus
	phases     *prometheus.Desc
	containers *prometheus.Desc
	ready      *prometheus.Desc
}

func newPodMetrics(statuses func() []v1.PodStatus) *podMetrics {
	return &podMetrics{
		statuses:   statuses,
		phases:     prometheus.NewDesc("statusd_pods_by_phase", "Pods of this node, by the phase that it reports.", []string{"phase"}, nil),
		containers: prometheus.NewDesc("statusd_containers", "Containers of the pods of this node, by state: waiting, running, terminated.", []string{"state"}, nil),
		ready:      prometheus.NewDesc("statusd_pods_ready", "Pods of this node that are Ready.", nil, nil),
	}
}

// Describe implements [prometheus.Collector].
func (m *podMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- m.phases
	descriptions <- m.containers
	descriptions <- m.ready
}

// Collect implements [prometheus.Collector].
func (m *podMetrics) Collect(values chan<- prometheus.Metric) {
	phases := map[v1.PodPhase]float64{v1.PodPending: 0, v1.PodRunning: 0, v1.PodSucceeded: 0, v1.PodFailed: 0}
	states := map[string]float64{"waiting": 0, "running": 0, "terminated": 0}
	ready := 0.0
	for _, status := range m.statuses() {
		if _, known := phases[status.Phase]; known {
			phases[status.Phase]++
		} else { // nothing was reported yet
			phases[v1.PodPending]++
		}
		condition := podstatus.FindCondition(status.Conditions, v1.PodReady)
		ready += yes(condition != nil && condition.Status == v1.ConditionTrue)
		for _, list := range [][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
			for i := range list {
				states[stateOf(&list[i].State)]++
			}
		}
	}
	for phase, n := range phases {
		values <- prometheus.MustNewConstMetric(m.phases, prometheus.GaugeValue, n, string(phase))
	}
	for state, n := range states {
		values <- prometheus.MustNewConstMetric(m.containers, prometheus.GaugeValue, n, state)
	}
	values <- prometheus.MustNewConstMetric(m.ready, prometheus.GaugeValue, ready)
}

// statuses are the statuses that this node reports, empty for pods without a report.
func (a *Agent) statuses() []v1.PodStatus {
	all := a.table.All()
	statuses := make([]v1.PodStatus, len(all))
	for i, pod := range all {
		statuses[i], _ = a.manager.GetPodStatus(pod.UID)
	}
	return statuses
}

func stateOf(s *v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return "terminated"
	}
	return "waiting"
}
