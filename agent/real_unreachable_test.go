//go:build real

package agent

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

// gracePeriod is how long a node may be silent. A node with quickLease renews its lease every second. The controllers must not
// find it silent because the machine is busy: then they mark and evict its pods, rightly.
const gracePeriod = 20 * time.Second

var quickLease = Options{lease: 4 * time.Second}

// podWatch follows the pods of a namespace and keeps the newest of each.
type podWatch struct {
	events watch.Interface
	newest map[string]*v1.Pod
}

func watchPods(t *testing.T, server *controlplanetest.Server, namespace string) *podWatch {
	t.Helper()
	events, err := server.Admin().CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	return &podWatch{events: events, newest: map[string]*v1.Pod{}}
}

// until follows until all is as wanted, and calls each, if there is one, with every change on the way.
func (w *podWatch) until(t *testing.T, what string, wanted func(map[string]*v1.Pod) bool, each func(before, after *v1.Pod)) {
	t.Helper()
	late := time.After(10 * time.Minute) // for a machine under load
	for !wanted(w.newest) {
		select {
		case event := <-w.events.ResultChan():
			pod, ok := event.Object.(*v1.Pod)
			if !ok {
				t.Fatalf("the watch ended before %s", what)
			}
			before := w.newest[pod.Name]
			w.newest[pod.Name] = pod
			if event.Type == watch.Deleted {
				delete(w.newest, pod.Name)
			}
			if each != nil && before != nil && event.Type == watch.Modified {
				each(before, pod)
			}
		case <-late:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// ready reports whether n pods have this readiness.
func ready(n int, want bool) func(map[string]*v1.Pod) bool {
	return func(pods map[string]*v1.Pod) bool {
		count := 0
		for _, pod := range pods {
			if isReady(&pod.Status) == want {
				count++
			}
		}
		return count == n
	}
}

func processPod(namespace, name, node string) *v1.Pod {
	pod := controlplanetest.Pod(namespace, name, node)
	pod.Spec.Containers[0].Image = "host"
	pod.Spec.Containers[0].Command = []string{"sleep", "1000000"}
	grace := int64(1)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	return pod
}

// clusterConfig is that of a node of the cluster which takes ordinary pods.
func clusterConfig(t *testing.T, server *controlplanetest.Server, node string) Config {
	t.Helper()
	c := testConfig(t, node)
	c.Manifests = ""
	c.Node.Taints = []string{}
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig(node); err != nil {
		t.Fatal(err)
	}
	return c
}

// While statusd is away the node lifecycle controller marks its pods as not ready. Afterwards they are
// ready again, each by one change, and neither writer takes it back.
func TestRealServer_PodsAreReadyAgainAfterTheNodeWasUnreachable(t *testing.T) {
	t.Parallel() // it waits for the controllers most of the time
	const pods = 20
	server := controlplanetest.StartCluster(t, gracePeriod)
	namespace := server.Namespace(t)
	c := clusterConfig(t, server, "away")
	a, stop := runWith(t, c, quickLease)
	awaitNode(t, server, "away", v1.ConditionTrue, "")
	w := watchPods(t, server, namespace)
	for i := range pods {
		pod := processPod(namespace, fmt.Sprintf("pod-%d", i), "away")
		if i%2 == 0 { // readiness that has to be found again
			pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{
				ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}},
				PeriodSeconds: 1, TimeoutSeconds: 60, // under load too
			}
		}
		server.CreatePod(t, pod)
	}
	w.until(t, "all pods ready", ready(pods, true), nil)
	if err := a.manager.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := map[string]*v1.Pod{}
	for name, pod := range w.newest {
		before[name] = pod
	}
	stop()
	w.until(t, "all pods marked by the node lifecycle controller", ready(pods, false), nil)

	back := time.Now()
	runWith(t, c, quickLease)
	changes := 0
	lost := func(before, after *v1.Pod) {
		changes++
		if isReady(&before.Status) && !isReady(&after.Status) {
			t.Errorf("pod %s lost its readiness again: %v", after.Name, after.Status.Conditions)
		}
	}
	w.until(t, "all pods ready again", ready(pods, true), lost)
	t.Logf("%d pods ready %s after the return, with %d changes", pods, time.Since(back).Round(time.Millisecond), changes)
	if changes > pods {
		t.Errorf("%d changes made %d pods ready again, want one for each", changes, pods)
	}
	for name, pod := range w.newest {
		if was, is := before[name].Status.ContainerStatuses[0], pod.Status.ContainerStatuses[0]; is.RestartCount != 0 || is.ContainerID != was.ContainerID {
			t.Errorf("pod %s runs in container %s with %d restarts, want %s with none", name, is.ContainerID, is.RestartCount, was.ContainerID)
		}
	}
	// The controllers have seen the node: it has no taint any more. Still no pod has lost anything.
	awaitNodeAs(t, server, "away", "no taint", func(n *v1.Node) bool { return len(n.Spec.Taints) == 0 })
	fence := server.CreatePod(t, processPod(namespace, "fence", "away"))
	w.until(t, "a new pod ready", func(m map[string]*v1.Pod) bool {
		pod := m[fence.Name]
		return pod != nil && isReady(&pod.Status)
	}, lost)
}

// A pod that the taint manager has deleted while statusd was away ends when it is back, and is gone.
func TestRealServer_PodsEvictedWhileTheNodeWasUnreachableEnd(t *testing.T) {
	t.Parallel()
	server := controlplanetest.StartCluster(t, gracePeriod)
	namespace := server.Namespace(t)
	keepAlive(t, server, "present") // controllers evict from no node while all are unreachable
	c := clusterConfig(t, server, "evicted")
	_, stop := runWith(t, c, quickLease)
	awaitNode(t, server, "evicted", v1.ConditionTrue, "")
	awaitNodeAs(t, server, "evicted", "no taint", func(n *v1.Node) bool { return len(n.Spec.Taints) == 0 })
	w := watchPods(t, server, namespace)
	second := int64(1)
	leaves, stays := processPod(namespace, "leaves", "evicted"), processPod(namespace, "stays", "evicted")
	leaves.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeUnreachable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: &second}}
	stays.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeUnreachable, Operator: v1.TolerationOpExists}}
	server.CreatePod(t, leaves)
	server.CreatePod(t, stays)
	w.until(t, "both pods ready", ready(2, true), nil)
	stop()
	w.until(t, "one pod deleted by taint eviction, one marked", func(m map[string]*v1.Pod) bool {
		return m["leaves"] != nil && m["leaves"].DeletionTimestamp != nil && !isReady(&m["stays"].Status)
	}, nil)

	runWith(t, c, quickLease)
	w.until(t, "the deleted pod gone, the other ready", func(m map[string]*v1.Pod) bool {
		return m["leaves"] == nil && isReady(&m["stays"].Status)
	}, nil)
	if restarts := w.newest["stays"].Status.ContainerStatuses[0].RestartCount; restarts != 0 {
		t.Errorf("the pod that stays was restarted %d times", restarts)
	}
}

// keepAlive is a node that is ready and renews its lease until the test ends.
func keepAlive(t *testing.T, server *controlplanetest.Server, name string) {
	t.Helper()
	server.Node(t, name)
	nodes, leases := server.Admin().CoreV1().Nodes(), server.Admin().CoordinationV1().Leases(v1.NamespaceNodeLease)
	node, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []v1.NodeCondition{{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "Test", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	if _, err := nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	lease, err := leases.Create(t.Context(), &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			now := metav1.NowMicro()
			lease.Spec.HolderIdentity, lease.Spec.RenewTime = &name, &now
			renewed, err := leases.Update(ctx, lease, metav1.UpdateOptions{})
			if err != nil { // perhaps it was taken, and its answer was lost
				renewed, err = leases.Get(ctx, name, metav1.GetOptions{})
			}
			if err == nil {
				lease = renewed
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// awaitNodeAs watches a node until it is as wanted.
func awaitNodeAs(t *testing.T, server *controlplanetest.Server, name, what string, wanted func(*v1.Node) bool) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	nodes, err := server.Admin().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Stop()
	for event := range nodes.ResultChan() {
		if node, ok := event.Object.(*v1.Node); ok && wanted(node) {
			return
		}
	}
	t.Fatalf("node %s did not get there: no %s", name, what)
}
