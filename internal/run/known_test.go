package run

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/status"
)

// Rules are not evaluated before the static pods are reported: each would look like one whose alerts are over.
func TestAwaitKnown_WaitsForTheFirstReportOfAStaticPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := pods.New()
		static := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "static", Namespace: "default", UID: "1", Annotations: map[string]string{"kubernetes.io/config.source": "file"},
		}}
		table.Set(static)
		manager, err := status.New(status.Options{Pods: table})
		if err != nil {
			t.Fatal(err)
		}
		listed := make(chan struct{})
		close(listed)
		p := &Process{node: &inside.Node{Table: table, Manager: manager, Listed: listed}, known: make(chan struct{}), log: slog.New(slog.DiscardHandler)}
		go func() { _ = p.awaitKnown(t.Context()) }()
		time.Sleep(knownWithin / 2)
		select {
		case <-p.known:
			t.Error("all is known although the static pod was not reported")
		default:
		}
		if _, err := manager.SetPodStatus(static, v1.PodStatus{Phase: v1.PodRunning}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		select {
		case <-p.known:
		default:
			t.Error("the pod is reported, and not all is known")
		}
	})
}
