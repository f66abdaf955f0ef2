package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/guard/notify"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/controlplanetest"
)

// verdict is what the query API says.
func verdict(t *testing.T, a *Agent) guard.Report {
	t.Helper()
	code, body := get(t, a, "/apis/v1/guard")
	var report guard.Report
	if err := json.Unmarshal([]byte(body), &report); err != nil || code != http.StatusOK {
		t.Fatalf("got %d %s (%v)", code, body, err)
	}
	return report
}

func awaitVerdict(t *testing.T, a *Agent, want guard.Health) guard.Report {
	t.Helper()
	for {
		if report := verdict(t, a); report.Health == want {
			return report
		}
		if !backoff.Sleep(t.Context(), 100*time.Millisecond) {
			t.Fatal("the test has ended")
		}
	}
}

// awaitCondition waits until the condition of the Node has a status and returns it.
func awaitCondition(t *testing.T, server *controlplanetest.Server, node string, want v1.ConditionStatus) v1.NodeCondition {
	t.Helper()
	for {
		current, err := server.Admin().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		if err == nil {
			for _, c := range current.Status.Conditions {
				if c.Type == notify.ConditionType && c.Status == want {
					return c
				}
			}
		}
		if !backoff.Sleep(t.Context(), 100*time.Millisecond) {
			t.Fatalf("the test has ended: %v", err)
		}
	}
}

// A node without an API server has a verdict too.
func TestStandaloneAgentJudgesItself(t *testing.T) {
	a, _ := run(t, testConfig(t, "judged"))
	report := awaitVerdict(t, a, guard.Healthy)
	if report.Unit != "statusd" || report.PID == 0 {
		t.Errorf("got %+v, want a verdict about this process", report)
	}
	if _, metrics := get(t, a, "/metrics"); !strings.Contains(metrics, `statusd_kubelet_verdict{health="healthy"} 1`) {
		t.Error("the metrics have no verdict")
	}
}

// A verdict can be switched off.
func TestAgentWithoutAVerdict(t *testing.T) {
	c := testConfig(t, "unjudged")
	c.Guard = GuardConfig{}
	a, _ := run(t, c)
	if code, body := get(t, a, "/apis/v1/guard"); code != http.StatusNotFound {
		t.Errorf("got %d %s, want 404", code, body)
	}
}

// An agent whose locks are stuck says so: to the query API, as a condition of its Node, and as an Event. Its lease, which is
// renewed without them, does not contradict that. It is well again once they are free, and does not restart itself.
func TestRealServer_AStuckAgentSaysSo(t *testing.T) {
	server := shared.Server(t)
	c := testConfig(t, "stuck")
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("stuck"); err != nil {
		t.Fatal(err)
	}
	began := processBegan
	processBegan = time.Now().Add(-time.Hour) // what a process that has just begun does not do yet does not count
	t.Cleanup(func() { processBegan = began })
	stuck, free := make(chan struct{}), make(chan struct{})
	a, stop := run(t, c, func(a *Agent) {
		ask := a.guard.locks.ask
		a.guard.locks.ask = func(ctx context.Context) error {
			select {
			case <-stuck:
				<-free
			default:
			}
			return ask(ctx)
		}
	})
	awaitVerdict(t, a, guard.Healthy)
	awaitCondition(t, server, "stuck", v1.ConditionTrue)

	close(stuck)
	report := awaitVerdict(t, a, guard.Unhealthy)
	if report.Reasons[0].Code != guard.SyncLoopStuck || report.Withheld != neverItself || len(report.Restarts) != 0 {
		t.Errorf("got %+v, want that the locks are stuck and that it does not restart itself", report)
	}
	if c := awaitCondition(t, server, "stuck", v1.ConditionFalse); c.Reason != guard.SyncLoopStuck {
		t.Errorf("the condition is %+v", c)
	}
	awaitEvent(t, server, "stuck", string(guard.NoticeUnhealthy))

	close(free)
	awaitVerdict(t, a, guard.Healthy)
	awaitCondition(t, server, "stuck", v1.ConditionTrue)
	awaitEvent(t, server, "stuck", string(guard.NoticeHealthy))
	stop()
	node, err := server.Admin().CoreV1().Nodes().Get(t.Context(), "stuck", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == notify.ConditionType {
			t.Errorf("after the end the Node has the verdict of an agent that does not look any more: %+v", c)
		}
	}
}

func awaitEvent(t *testing.T, server *controlplanetest.Server, node, reason string) {
	t.Helper()
	for {
		list, err := server.Admin().CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + node + ",reason=" + reason,
		})
		if err == nil && len(list.Items) > 0 {
			return
		}
		if !backoff.Sleep(t.Context(), 100*time.Millisecond) {
			t.Fatalf("the test has ended: %v", err)
		}
	}
}
