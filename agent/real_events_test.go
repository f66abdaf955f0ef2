//go:build real

package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// awaitEvents looks at the events of an object until all that are wanted are there, and returns them by reason.
func awaitEvents(t *testing.T, server *controlplanetest.Server, namespace, name string, want ...string) map[string]v1.Event {
	t.Helper()
	got := map[string]v1.Event{}
	missing := func(reason string) bool { _, ok := got[reason]; return !ok }
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(10 * time.Minute); ; <-ticker.C {
		list, err := server.Admin().CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			got[e.Reason] = e
		}
		if !slices.ContainsFunc(want, missing) {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("%s has events %v, want %q", name, list.Items, want)
		}
	}
}

// A real API server takes the events of a pod and of the node, also those with what a hostile probe has
// answered, and goes on after one that it refuses.
func TestRealServer_Events(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	c := testConfig(t, "eventful")
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig(c.NodeName); err != nil {
		t.Fatal(err)
	}
	a, _ := run(t, c)
	awaitReady(t, a, "sleeper-eventful")
	awaitEvents(t, server, "default", c.NodeName, eventStarting, "NodeReady", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID")

	a.events.Event(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "missing", Name: "ghost"}}, "", v1.EventTypeNormal, "Started", "") // refused

	pod := hostPod(namespace, "web", c.NodeName, "sleep 1000000")
	noise := `printf '\033[2J\377\376\0'; head -c 100000 /dev/zero | tr '\0' '\n'; exit 1`
	pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"/bin/sh", "-c", noise}}}}
	server.CreatePod(t, pod)
	events := awaitEvents(t, server, namespace, "web", "Created", "Started", "Unhealthy")
	for reason, e := range events {
		if e.ReportingController != process.Component || e.ReportingInstance != c.NodeName || e.InvolvedObject.FieldPath == "" {
			t.Errorf("%s: got %+v", reason, e)
		}
	}
	if got := events["Unhealthy"].Message; len(got) > process.MaxEventMessage || strings.ContainsAny(got, "\x00\x1b") || !strings.HasPrefix(got, "Readiness probe failed: ") {
		t.Errorf("got %d bytes: %.60q", len(got), got)
	}
	if err := server.Admin().CoreV1().Pods(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	if got := awaitEvents(t, server, namespace, "web", "Killing")["Killing"].Message; got != "Stopping container "+pod.Spec.Containers[0].Name {
		t.Errorf("the deletion says %q", got)
	}
	_, metrics := get(t, a, "/metrics")
	if want := fmt.Sprintf("\nstatusd_events_total{result=%q} 1\n", process.EventRefused); !strings.Contains(metrics, want) {
		t.Errorf("no %q in the metrics", want)
	}
}
