package kubeletapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/statusd/statusd/kubeletapi"
	"github.com/statusd/statusd/runtime"
)

// measured is a server whose machine and one pod use what is written here.
func measured(t *testing.T) alone {
	t.Helper()
	at := time.UnixMilli(1_700_000_000_500)
	rt := newFakeRuntime()
	pod := webPod(t, rt)
	cores := uint64(250_000_000)
	rt.stats = map[types.UID]runtime.PodStats{pod.UID: {
		At: at, StartedAt: at.Add(-time.Hour), CPU: runtime.CPUStats{Nanoseconds: 2_500_000_000, NanoCores: &cores}, Memory: runtime.MemoryStats{WorkingSet: 4096},
		Containers: []runtime.ContainerStats{{
			Name: "main", At: at, StartedAt: time.Unix(1_699_999_000, 0), CPU: runtime.CPUStats{Nanoseconds: 1_500_000_000}, Memory: runtime.MemoryStats{WorkingSet: 2048, RSS: 1024, Usage: 3072},
		}},
	}}
	gone, ended := &v1.Pod{}, &v1.Pod{}
	gone.Name, gone.Namespace, gone.UID = "gone", "default", "gone"
	ended.Name, ended.Namespace, ended.UID = "ended", "default", "ended"
	rt.stats[ended.UID] = runtime.PodStats{At: at}
	return startAlone(t, kubeletapi.Options{
		NodeName: "node", Runtime: rt, Pods: &fakePods{pods: []*v1.Pod{pod, gone, ended}},
		Usage: func() (kubeletapi.Usage, error) {
			return kubeletapi.Usage{At: at, CPUNanoseconds: 10_000_000_000, MemoryWorkingSet: 1 << 20, MemoryUsage: 2 << 20, BootedAt: at.Add(-24 * time.Hour)}, nil
		},
	})
}

// The names, labels and types that metrics-server and Prometheus know of a kubelet.
func TestResourceMetricsAreThoseOfTheKubelet(t *testing.T) {
	status, body := measured(t).get(t, "/metrics/resource")
	var lines []string
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "# HELP") {
			lines = append(lines, line)
		}
	}
	want := `# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="main",namespace="default",pod="web"} 1.5 1700000000500
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="main",namespace="default",pod="web"} 2048 1700000000500
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="main",namespace="default",pod="web"} 1.699999e+09
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 10 1700000000500
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 1.048576e+06 1700000000500
# TYPE pod_cpu_usage_seconds_total counter
pod_cpu_usage_seconds_total{namespace="default",pod="web"} 2.5 1700000000500
# TYPE pod_memory_working_set_bytes gauge
pod_memory_working_set_bytes{namespace="default",pod="web"} 4096 1700000000500
# TYPE resource_scrape_error gauge
resource_scrape_error 0
# TYPE scrape_error gauge
scrape_error 0
`
	if got := strings.Join(lines, ""); status != http.StatusOK || got != want {
		t.Errorf("got %d\n%s\nwant\n%s", status, got, want)
	}
}

func TestTheSummaryHasNodeAndPods(t *testing.T) {
	status, body := measured(t).get(t, "/stats/summary")
	var summary stats.Summary
	if err := json.Unmarshal([]byte(body), &summary); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if summary.Node.NodeName != "node" || *summary.Node.CPU.UsageCoreNanoSeconds != 10_000_000_000 || *summary.Node.Memory.WorkingSetBytes != 1<<20 {
		t.Errorf("node: %+v", summary.Node)
	}
	if len(summary.Pods) != 1 {
		t.Fatalf("%d pods, want the one that runs", len(summary.Pods))
	}
	pod := summary.Pods[0]
	if pod.PodRef != (stats.PodReference{Name: "web", Namespace: "default", UID: "web-uid"}) || *pod.CPU.UsageNanoCores != 250_000_000 {
		t.Errorf("pod: %+v", pod)
	}
	if c := pod.Containers[0]; c.Name != "main" || *c.CPU.UsageCoreNanoSeconds != 1_500_000_000 || *c.Memory.RSSBytes != 1024 {
		t.Errorf("container: %+v", c)
	}
}

func TestAPodIsShownWhole(t *testing.T) {
	s := web(t, newFakeRuntime())
	status, body := s.get(t, "/pods")
	var list v1.PodList
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if list.Kind != "PodList" || list.APIVersion != "v1" || len(list.Items) != 1 || list.Items[0].Status.Phase != v1.PodRunning {
		t.Errorf("got %s", body)
	}
	_, running := s.get(t, "/runningpods/")
	if want := `"containers":[{"name":"main"`; !strings.Contains(running, want) {
		t.Errorf("running pods: got %s, want %s", running, want)
	}
}
