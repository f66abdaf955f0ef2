package kubeletapi

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// The metrics of /metrics/resource. Names and labels are stable in Kubernetes; metrics-server reads them.
var (
	byContainer = []string{"container", "pod", "namespace"}
	byPod       = []string{"pod", "namespace"}

	nodeCPU         = prometheus.NewDesc("node_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the node in core-seconds", nil, nil)
	nodeMemory      = prometheus.NewDesc("node_memory_working_set_bytes", "[STABLE] Current working set of the node in bytes", nil, nil)
	containerStart  = prometheus.NewDesc("container_start_time_seconds", "[STABLE] Start time of the container since unix epoch in seconds", byContainer, nil)
	containerCPU    = prometheus.NewDesc("container_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the container in core-seconds", byContainer, nil)
	containerMemory = prometheus.NewDesc("container_memory_working_set_bytes", "[STABLE] Current working set of the container in bytes", byContainer, nil)
	podCPU          = prometheus.NewDesc("pod_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the pod in core-seconds", byPod, nil)
	podMemory       = prometheus.NewDesc("pod_memory_working_set_bytes", "[STABLE] Current working set of the pod in bytes", byPod, nil)
	scrapeError     = prometheus.NewDesc("resource_scrape_error", "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise", nil, nil)
	oldScrapeError  = prometheus.NewDesc("scrape_error", "[ALPHA] (Deprecated since 1.29.0) 1 if there was an error while getting container metrics, 0 otherwise", nil, nil)
)

// serveResources serves /metrics/resource.
func (s *Server) serveResources(w http.ResponseWriter, request *http.Request) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&resources{summary: func() (*stats.Summary, error) { return s.summary(request.Context()) }})
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, request)
}

// resources collects the metrics of one scrape.
type resources struct {
	summary func() (*stats.Summary, error)
}

// Describe sends nothing: the collector lives for one scrape.
func (r *resources) Describe(chan<- *prometheus.Desc) {}

func (r *resources) Collect(to chan<- prometheus.Metric) {
	summary, err := r.summary()
	failed := 0.0
	if err != nil {
		failed = 1
	}
	for _, desc := range []*prometheus.Desc{scrapeError, oldScrapeError} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, failed)
	}
	if err != nil {
		return
	}
	collectCPU(to, nodeCPU, summary.Node.CPU)
	collectMemory(to, nodeMemory, summary.Node.Memory)
	for _, pod := range summary.Pods {
		name := []string{pod.PodRef.Name, pod.PodRef.Namespace}
		collectCPU(to, podCPU, pod.CPU, name...)
		collectMemory(to, podMemory, pod.Memory, name...)
		for _, c := range pod.Containers {
			labels := append([]string{c.Name}, name...)
			if !c.StartTime.IsZero() {
				to <- prometheus.MustNewConstMetric(containerStart, prometheus.GaugeValue, float64(c.StartTime.UnixNano())/1e9, labels...)
			}
			collectCPU(to, containerCPU, c.CPU, labels...)
			collectMemory(to, containerMemory, c.Memory, labels...)
		}
	}
}

func collectCPU(to chan<- prometheus.Metric, desc *prometheus.Desc, cpu *stats.CPUStats, labels ...string) {
	seconds := time.Duration(*cpu.UsageCoreNanoSeconds).Seconds()
	to <- prometheus.NewMetricWithTimestamp(cpu.Time.Time, prometheus.MustNewConstMetric(desc, prometheus.CounterValue, seconds, labels...))
}

func collectMemory(to chan<- prometheus.Metric, desc *prometheus.Desc, memory *stats.MemoryStats, labels ...string) {
	bytes := float64(*memory.WorkingSetBytes)
	to <- prometheus.NewMetricWithTimestamp(memory.Time.Time, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, bytes, labels...))
}
