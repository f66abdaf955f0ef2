//go:build real

package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/test/announced"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

// fakeHost is a machine whose shutdowns a test announces.
type fakeHost struct {
	announce chan bool
	released chan struct{} // capacity 8: more than a test lets go
}

func (h *fakeHost) Delay(context.Context) (time.Duration, func(), error) {
	return time.Minute, func() { h.released <- struct{}{} }, nil
}

func (h *fakeHost) Announcements(ctx context.Context) (<-chan bool, error) {
	return announced.Shutdowns(ctx, h.announce), nil
}

// awaitNode watches the Node until its Ready condition is as wanted.
func awaitNode(t *testing.T, server *controlplanetest.Server, name string, status v1.ConditionStatus, message string) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	events, err := server.Admin().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	var last v1.NodeCondition
	for event := range events.ResultChan() {
		node, ok := event.Object.(*v1.Node)
		if !ok {
			break
		}
		for _, last = range node.Status.Conditions {
			if last.Type == v1.NodeReady && last.Status == status && strings.Contains(last.Message, message) {
				return
			}
		}
	}
	t.Fatalf("the node is %v, want Ready=%s with %q", last, status, message)
}

// awaitPod watches a pod until it is as wanted.
func awaitPod(t *testing.T, server *controlplanetest.Server, namespace, name, what string, wanted func(*v1.Pod) bool) *v1.Pod {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	events, err := server.Admin().CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	var last v1.PodStatus
	for event := range events.ResultChan() {
		if pod, ok := event.Object.(*v1.Pod); ok && event.Type != watch.Deleted {
			if last = pod.Status; wanted(pod) {
				return pod
			}
		}
	}
	t.Fatalf("pod %s is not %s: %v", name, what, last)
	return nil
}

func hostPod(namespace, name, node, script string) *v1.Pod {
	pod := controlplanetest.Pod(namespace, name, node)
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command = "host", []string{"/bin/sh", "-c", script}
	return pod
}

// A shutdown of the machine is announced: the node is not ready, its pods end and say why, others
// are refused, and only then the shutdown goes on. Then it is canceled, and the node is as before.
func TestShutdownOfTheMachine(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	c := testConfig(t, "closing")
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("closing"); err != nil {
		t.Fatal(err)
	}
	host := &fakeHost{announce: make(chan bool), released: make(chan struct{}, 8)}
	a, _ := runWith(t, c, Options{Host: host})
	ready := func(pod *v1.Pod) bool { return isReady(&pod.Status) }
	server.CreatePod(t, hostPod(namespace, "web", "closing", "exec sleep 1000000"))
	awaitPod(t, server, namespace, "web", "ready", ready)
	awaitReady(t, a, "sleeper-closing")

	host.announce <- true
	awaitNode(t, server, "closing", v1.ConditionFalse, "node is shutting down")
	ended := awaitPod(t, server, namespace, "web", "failed", func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodFailed })
	target := podstatus.FindCondition(ended.Status.Conditions, v1.DisruptionTarget)
	if ended.Status.Reason != "Terminated" || ended.Status.Message != "Pod was terminated in response to imminent node shutdown." ||
		target == nil || target.Reason != "TerminationByKubelet" || ended.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("got %s %q, condition %v, container %v; want what the kubelet says", ended.Status.Reason, ended.Status.Message, target, ended.Status.ContainerStatuses[0].State)
	}
	<-host.released
	if n := a.runningPods(); n != 0 {
		t.Errorf("the shutdown goes on while %d pods run", n)
	}
	server.CreatePod(t, hostPod(namespace, "late", "closing", "exec sleep 1000000"))
	late := awaitPod(t, server, namespace, "late", "rejected", func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodFailed })
	if late.Status.Reason != "NodeShutdown" {
		t.Errorf("a pod that came late failed with reason %q, want NodeShutdown", late.Status.Reason)
	}

	host.announce <- false
	awaitNode(t, server, "closing", v1.ConditionTrue, "")
	awaitReady(t, a, "sleeper-closing")
	server.CreatePod(t, hostPod(namespace, "after", "closing", "exec sleep 1000000"))
	awaitPod(t, server, namespace, "after", "ready", ready)
}
