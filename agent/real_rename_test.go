//go:build real

package agent

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
	"github.com/statusd/statusd/test/testlog"
)

// runUntilReload runs an agent until a function returns, and then as for a reload.
func runUntilReload(t *testing.T, c Config, memory *Memory, during func()) {
	t.Helper()
	a, err := New(c, withProcesses(c, Options{Logger: testlog.New(t), Memory: memory}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, reload := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	during()
	reload(ErrReload)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// awaitLease returns when a node has a lease.
func awaitLease(t *testing.T, server *controlplanetest.Server, name string) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	leases, err := server.Admin().CoordinationV1().Leases(v1.NamespaceNodeLease).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer leases.Stop()
	if event, ok := <-leases.ResultChan(); !ok || event.Type == watch.Error {
		t.Fatalf("node %s has no lease: %v %v", name, event.Object, context.Cause(ctx))
	}
}

// unusedName is a name that no other test, and no other run of a test, has for a node.
func unusedName(prefix string) string { return fmt.Sprintf("%s-%d", prefix, time.Now().UnixNano()) }

// After a reload with another nodeName and stateDir the machine is another node, which was never deleted.
func TestReload_WithAnotherNodeName_RegistersTheNode(t *testing.T) {
	server := shared.Server(t)
	memory := &Memory{}
	defer memory.Close()
	for range 2 {
		name := unusedName("renamed")
		c := testConfig(t, name)
		var err error
		if c.Kubeconfig, err = server.Process.NodeKubeconfig(name); err != nil {
			t.Fatal(err)
		}
		runUntilReload(t, c, memory, func() { awaitNode(t, server, name, v1.ConditionTrue, "") })
	}
}

// A machine that is started with the name of a live node leaves the Node and its pods alone until the other machine is gone.
func TestNameOfALiveNode_IsLeftAlone(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	name := unusedName("twice")
	first, second := testConfig(t, name), testConfig(t, name)
	var err error
	if first.Kubeconfig, err = server.Process.NodeKubeconfig(name); err != nil {
		t.Fatal(err)
	}
	second.Kubeconfig = first.Kubeconfig
	_, stopFirst := runWith(t, first, Options{lease: time.Hour})
	awaitLease(t, server, name)
	a, _ := runWith(t, second, Options{})
	awaitEvents(t, server, metav1.NamespaceDefault, name, "NodeNameInUse")

	server.CreatePod(t, hostPod(namespace, "pod", name, "sleep 1000000"))
	running := func(pod *v1.Pod) bool { return isReady(&pod.Status) }
	before := awaitPod(t, server, namespace, "pod", "ready", running)
	if found, err := a.runtime.Pods(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("the second machine has %d pods, %v: want none", len(found), err)
	}
	if code, body := get(t, a, "/readyz?verbose"); code == http.StatusOK || !strings.Contains(body, "in use by another kubelet or agent") {
		t.Errorf("readyz of the second machine answers %d %q, want the problem", code, body)
	}
	stopFirst() // its journal is free, so that nothing waits for its lease
	awaitPod(t, server, namespace, "pod", "ready on the second machine", func(pod *v1.Pod) bool {
		return running(pod) && pod.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID
	})
}
