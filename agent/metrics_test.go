package agent

import (
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var eventful = &v1.Pod{
	ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1"},
	Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
}

// Metrics are gathered while pods run, probes answer and events come.
func TestMetricsUnderLoad(t *testing.T) {
	a, _ := run(t, testConfig(t, "gathered"))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 25 {
				if _, err := a.metrics.Gather(); err != nil {
					t.Error(err)
				}
				a.events.Event(eventful, "main", "Normal", "Started", "")
			}
		})
	}
	awaitReady(t, a, "sleeper-gathered")
	group.Wait()
	_, text := get(t, a, "/metrics")
	for _, want := range []string{`statusd_pods_by_phase{phase="Running"} 1`, `statusd_containers{state="running"} 1`, "statusd_pods_ready 1",
		`statusd_container_starts_total{result="success"} 1`, `statusd_pod_workers{stage="syncing"} 1`} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s in the metrics", want)
		}
	}
}
