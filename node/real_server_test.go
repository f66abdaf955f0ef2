//go:build real

package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) }

// awaitNode watches the Node as an administrator until it is as wanted, after a version of it if that
// is not empty: the server may begin a watch with a state that is older than the answers it has given.
func awaitNode(t *testing.T, admin kubernetes.Interface, name, after string, wanted func(*v1.Node) bool) *v1.Node {
	t.Helper()
	w, err := admin.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(), ResourceVersion: after,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if node, ok := event.Object.(*v1.Node); ok && event.Type != "DELETED" && wanted(node) {
			return node
		}
	}
	t.Fatalf("the watch ended before node %s was as wanted", name)
	return nil
}

func ready(node *v1.Node, status v1.ConditionStatus) bool {
	c := find(node.Status.Conditions, v1.NodeReady)
	return c != nil && c.Status == status
}

// The whole life of a Node on a real server, as the node user under the Node authorizer
// and NodeRestriction.
func TestNodeOnARealServer(t *testing.T) {
	server := shared.Server(t)
	const name = "registers-itself"
	client, admin := server.Node(t, name), server.Admin()
	// The helper made the object; registration is what we want to see.
	if err := admin.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n, err := New(Options{
		Client: client, Name: name, Version: "v0.1.0", RuntimeVersion: "process://1", Interval: 200 * time.Millisecond,
		Labels: map[string]string{"node.kubernetes.io/pool": "a", "example.com/rack": "7"},
		Taints: []v1.Taint{{Key: "example.com/dedicated", Effect: v1.TaintEffectNoSchedule}},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()

	node := awaitNode(t, admin, name, "", func(node *v1.Node) bool { return ready(node, v1.ConditionTrue) })
	if node.Labels["example.com/rack"] != "7" || node.Status.Capacity.Cpu().IsZero() || node.Status.Allocatable.Memory().IsZero() || len(node.Status.Addresses) == 0 {
		t.Errorf("the server's node is not what the machine is: %+v", node)
	}
	var dedicated bool
	for _, taint := range node.Spec.Taints {
		dedicated = dedicated || taint.Key == "example.com/dedicated"
	}
	if !dedicated {
		t.Errorf("taints %v lack the configured one", node.Spec.Taints)
	}

	// Someone takes a label away and adds a condition; both is answered rightly.
	patch := func(patch string, subresources ...string) (version string) {
		t.Helper()
		patched, err := admin.CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		if err != nil {
			t.Fatal(err)
		}
		return patched.ResourceVersion
	}
	version := patch(`{"metadata":{"labels":{"admin":"was-here","example.com/rack":null}}}`)
	node = awaitNode(t, admin, name, version, func(node *v1.Node) bool { return node.Labels["example.com/rack"] == "7" })
	if node.Labels["admin"] != "was-here" {
		t.Errorf("labels %v: the administrator's is gone", node.Labels)
	}
	version = patch(`{"status":{"conditions":[{"type":"example.com/KernelHealthy","status":"True"},{"type":"Ready","status":"Unknown"}]}}`, "status")
	node = awaitNode(t, admin, name, version, func(node *v1.Node) bool { return ready(node, v1.ConditionTrue) })
	if find(node.Status.Conditions, "example.com/KernelHealthy") == nil {
		t.Errorf("conditions %v: the foreign one is gone", node.Status.Conditions)
	}

	// Deleted, it stays away; what an administrator puts back is adopted, and the lease follows.
	old := node.UID
	if err := admin.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := n.Report(t.Context()); !errors.Is(err, ErrDeleted) {
		t.Errorf("got %v, want ErrDeleted", err)
	}
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node = awaitNode(t, admin, name, "", func(node *v1.Node) bool { return node.UID != old && ready(node, v1.ConditionTrue) })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := n.Report(t.Context()); err != nil { // Run may have ended before it had the answer
		t.Fatal(err)
	}
	lease, _, err := n.renewLease(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if lease.OwnerReferences[0].UID != node.UID {
		t.Errorf("lease is owned by %v, want node %s", lease.OwnerReferences, node.UID)
	}

	// What was meant for the deleted object does not reach the one that took its name.
	late, err := statusPatch(old, n.o.status(n.reading))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.patch(t.Context(), "patch status", late, "status"); !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
		t.Errorf("a status for the old node: got %v, want that its UID is refused", err)
	}

	n.o.Ready = func() error { return errors.New("node is shutting down") }
	if err := n.Announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, admin, name, "", func(node *v1.Node) bool { return ready(node, v1.ConditionFalse) })
}
