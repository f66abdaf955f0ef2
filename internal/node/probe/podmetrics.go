package probe

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// podMetrics count the probes of each container, under the names and labels of the kubelet. The metrics of a
// pod are removed with the pod.
type podMetrics struct {
	results  *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// The kubelet's names of kinds and results.
var (
	kindLabels   = map[runtime.ProbeKind]string{runtime.StartupProbe: "Startup", runtime.ReadinessProbe: "Readiness", runtime.LivenessProbe: "Liveness"}
	resultLabels = map[result]string{success: "successful", failure: "failed", unknown: "unknown"}
)

func newPodMetrics() *podMetrics {
	return &podMetrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prober_probe_total", Help: "Cumulative number of a liveness, readiness or startup probe for a container by result.",
		}, []string{"probe_type", "result", "container", "pod", "namespace", "pod_uid"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "prober_probe_duration_seconds", Help: "Duration in seconds for a probe response.",
		}, []string{"probe_type", "container", "pod", "namespace"}),
	}
}

func (m *podMetrics) register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	return errors.Join(registerer.Register(m.results), registerer.Register(m.duration))
}

func (m *podMetrics) probed(pod *v1.Pod, container string, kind runtime.ProbeKind, r result, took time.Duration) {
	m.results.WithLabelValues(kindLabels[kind], resultLabels[r], container, pod.Name, pod.Namespace, string(pod.UID)).Inc()
	if r == success { // the duration of a failure is often just the timeout
		m.duration.WithLabelValues(kindLabels[kind], container, pod.Name, pod.Namespace).Observe(took.Seconds())
	}
}

// forget drops the metrics of a pod. Durations are by name, so they may belong to its successor too.
func (m *podMetrics) forget(pod *v1.Pod) {
	m.results.DeletePartialMatch(prometheus.Labels{"pod_uid": string(pod.UID)})
	m.duration.DeletePartialMatch(prometheus.Labels{"pod": pod.Name, "namespace": pod.Namespace})
}

// countOfPod counts a probe unless its pod was removed meanwhile.
func (p *Prober) countOfPod(t *task, r result, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	manifest := t.pod.manifest
	if p.pods[manifest.UID] == t.pod {
		p.byPod.probed(manifest, t.run.container.Name, t.kind, r, took)
	}
}
