//go:build real

package agent_test

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
	"github.com/statusd/statusd/test/testlog"
)

// stuck is a runtime that does not return from anything, whatever its context says, until it is
// released.
type stuck struct {
	*runtimefake.Runtime
	released chan struct{}
}

func (s *stuck) Check(pod *v1.Pod) []runtime.Unsupported {
	<-s.released
	return s.Runtime.Check(pod)
}

func (s *stuck) StartPod(ctx context.Context, pod *v1.Pod) error {
	<-s.released
	return s.Runtime.StartPod(ctx, pod)
}

func (s *stuck) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container, attempt int) (string, error) {
	<-s.released
	return s.Runtime.StartContainer(ctx, pod, c, attempt)
}

func (s *stuck) Pod(ctx context.Context, uid types.UID) (runtime.Pod, error) {
	<-s.released
	return s.Runtime.Pod(ctx, uid)
}

func (s *stuck) Pods(ctx context.Context) ([]runtime.Pod, error) {
	<-s.released
	return s.Runtime.Pods(ctx)
}

// A runtime that hangs keeps its pods from running, but not the node from being a node: it
// registers, answers, and publishes nothing that it does not know. When the runtime is back, the
// pods run.
func TestARuntimeThatHangsInEveryCall(t *testing.T) {
	server := agent.Shared.Server(t)
	rt := &stuck{Runtime: runtimefake.New(), released: make(chan struct{})}
	runNode(t, server, "hanging", rt)
	awaitNodeReady(t, server, "hanging")
	namespace := server.Namespace(t)
	pod := server.CreatePod(t, controlplanetest.Pod(namespace, "web", "hanging"))
	ended := controlplanetest.Pod(namespace, "ended", "hanging")
	server.CreatePod(t, ended)
	deletePod(t, server, ended)
	got := server.GetPod(t, namespace, "ended")
	if got.Status.Phase != v1.PodPending {
		t.Errorf("got phase %s while nothing is known of the pod, want Pending", got.Status.Phase)
	}
	close(rt.released)
	await(t, server, namespace, pod.Name, "ready", isReady)
	await(t, server, namespace, "ended", "gone", isGone)
}

func awaitNodeReady(t *testing.T, server *controlplanetest.Server, name string) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	w, err := server.Admin().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		node, ok := event.Object.(*v1.Node)
		if !ok {
			continue
		}
		for _, c := range node.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
				return
			}
		}
	}
	t.Fatalf("node %s did not get ready: %v", name, ctx.Err())
}

// An agent whose runtime hangs stops within its time all the same, and names what it left behind.
func TestAnAgentStopsThoughItsRuntimeHangs(t *testing.T) {
	server := agent.Shared.Server(t)
	rt := &stuck{Runtime: runtimefake.New(), released: make(chan struct{})}
	config := agent.Embedded("leaving")
	config.StateDir, config.ShutdownTimeout = t.TempDir(), time.Second
	config.Eviction.Hard = eviction.Disabled() // whatever the disk of this machine has left
	node, err := agent.New(config, agent.Options{
		Runtime: rt, RESTConfig: server.NodeConfig(t, "leaving"), Logger: testlog.New(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	awaitNodeReady(t, server, "leaving")
	cancel()
	if err := <-done; err == nil || !contains(err, "workers: did not stop in time") {
		t.Errorf("got %v, want that the workers did not stop in time", err)
	}
	close(rt.released)
}
