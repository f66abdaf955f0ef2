//go:build real

package run

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/notify"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

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
	a, stop := started(t, c, func(a *Process) {
		guard := a.console.Guard().(*selfGuard)
		ask := guard.locks.ask
		guard.locks.ask = func(ctx context.Context) error {
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
