//go:build real

package status_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

func TestRealServer_ThePodsWholeLife(t *testing.T) {
	n := startNode(t, shared.Server(t), "life")
	ns := n.server.Namespace(t)
	pod := n.create(ns, "web")

	n.set(pod, runningStatus(pod, false))
	n.flush()
	got := n.server.GetPod(t, ns, "web")
	if got.Status.Phase != v1.PodRunning || conditionOf(got, v1.PodReady) != v1.ConditionFalse || got.Status.PodIP != "10.1.2.3" || got.Status.StartTime == nil {
		t.Errorf("after the start the API says %+v", got.Status)
	}
	if got.Status.ObservedGeneration != pod.Generation {
		t.Errorf("observed generation is %d, want %d", got.Status.ObservedGeneration, pod.Generation)
	}
	for _, ready := range []bool{true, false, true} {
		if err := n.manager.SetContainerReadiness(pod.UID, containerID(pod), ready); err != nil {
			t.Fatal(err)
		}
		n.flush()
		got = n.server.GetPod(t, ns, "web")
		want := map[bool]v1.ConditionStatus{true: v1.ConditionTrue, false: v1.ConditionFalse}[ready]
		if conditionOf(got, v1.PodReady) != want || got.Status.ContainerStatuses[0].Ready != ready {
			t.Errorf("ready is %s in the API, want %s", conditionOf(got, v1.PodReady), want)
		}
	}

	// Deleted with grace: it stays until it has finished, and then goes at once.
	grace := int64(600)
	if err := n.server.Admin().CoreV1().Pods(ns).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		t.Fatal(err)
	}
	doomed := n.awaitSeen(pod, "deleted with grace", func(p *v1.Pod) bool { return p.DeletionTimestamp != nil })
	n.set(doomed, endedStatus(doomed, 0))
	n.flush()
	if got := n.server.GetPod(t, ns, "web"); got.Status.Phase != v1.PodSucceeded || conditionOf(got, v1.PodReady) != v1.ConditionFalse {
		t.Errorf("after the end the API says %s, ready %s", got.Status.Phase, conditionOf(got, v1.PodReady))
	}
	if err := n.manager.TerminatePod(doomed); err != nil {
		t.Fatal(err)
	}
	n.awaitGone(ns, "web", pod.UID)
	if got := n.requests.reads.Load(); got != 0 {
		t.Errorf("%d pods were read, want none: the watch and the answers are enough", got)
	}
}

// awaitGone waits until the API has no pod of this UID.
func (n *node) awaitGone(namespace, name string, uid types.UID) {
	n.Helper()
	n.until(fmt.Sprintf("pod %s/%s to be gone", namespace, name), func() bool {
		pod, err := n.server.Admin().CoreV1().Pods(namespace).Get(n.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && pod.UID != uid
	})
}

func TestRealServer_StaticPodWithItsMirror(t *testing.T) {
	n := startNode(t, shared.Server(t), "static")
	ns := n.server.Namespace(t)
	static := controlplanetest.Pod(ns, "etcd-static", n.name)
	static.UID = "0123456789abcdef"
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	n.table.Set(static)
	n.set(static, runningStatus(static, true))

	var last types.UID
	for round := range 2 { // the mirror is deleted and comes back under another UID
		mirror := n.createMirror(static)
		if mirror.UID == last {
			t.Fatalf("the mirror came back under the same UID %s", last)
		}
		last = mirror.UID
		got := n.await(ns, static.Name, "running", func(p *v1.Pod) bool { return p.UID == mirror.UID && p.Status.Phase == v1.PodRunning })
		if conditionOf(got, v1.PodReady) != v1.ConditionTrue {
			t.Errorf("round %d: the mirror is not ready: %+v", round, got.Status)
		}
		if s, ok := n.manager.GetPodStatus(mirror.UID); !ok || s.Phase != v1.PodRunning {
			t.Errorf("round %d: the status is not found by the mirror's UID", round)
		}
		now := int64(0)
		n.asAdmitted(func() error {
			return n.client.CoreV1().Pods(ns).Delete(t.Context(), static.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		})
		n.awaitGone(ns, static.Name, mirror.UID)
	}
}

func TestRealServer_APodThatClaimsToBeStaticIsReportedAndDeleted(t *testing.T) {
	n := startNode(t, shared.Server(t), "claims")
	ns := n.server.Namespace(t)
	pod := n.create(ns, "web", func(pod *v1.Pod) {
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	})
	n.set(pod, runningStatus(pod, true))
	n.await(ns, "web", "running", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
	if err := n.server.Admin().CoreV1().Pods(ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := n.manager.TerminatePod(pod); err != nil {
		t.Fatal(err)
	}
	n.awaitGone(ns, "web", pod.UID)
}

// createMirror creates the mirror of a static pod as the node may.
func (n *node) createMirror(static *v1.Pod) *v1.Pod {
	n.Helper()
	object, err := n.client.CoreV1().Nodes().Get(n.Context(), n.name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	controller := true
	mirror := controlplanetest.Pod(static.Namespace, static.Name, n.name)
	mirror.Annotations = map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "hash"}
	mirror.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.name, UID: object.UID, Controller: &controller}}
	var created *v1.Pod
	n.asAdmitted(func() (err error) {
		created, err = n.client.CoreV1().Pods(static.Namespace).Create(n.Context(), mirror, metav1.CreateOptions{})
		return err
	})
	n.awaitTable(created)
	return created
}

// asAdmitted repeats a request for as long as the server's admission does not know the node or the pod that
// it is about: NodeRestriction looks into a cache of its own.
func (n *node) asAdmitted(request func() error) {
	n.Helper()
	n.until("the server's admission", func() bool {
		err := request()
		if err != nil && !apierrors.IsNotFound(err) {
			n.Fatal(err)
		}
		return err == nil
	})
}

func TestRealServer_ForeignConditionsAndReadinessGatesAreKept(t *testing.T) {
	n := startNode(t, shared.Server(t), "foreign")
	ns := n.server.Namespace(t)
	const gate = "example.com/gate"
	pod := n.create(ns, "web", func(p *v1.Pod) {
		p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: gate}}
	})
	n.set(pod, runningStatus(pod, true))
	n.flush()
	got := n.server.GetPod(t, ns, "web")
	if conditionOf(got, v1.ContainersReady) != v1.ConditionTrue || conditionOf(got, v1.PodReady) != v1.ConditionFalse {
		t.Errorf("before the gate opens: containers ready %s, ready %s", conditionOf(got, v1.ContainersReady), conditionOf(got, v1.PodReady))
	}
	n.patchStatus(got, map[string]any{"conditions": []map[string]any{{"type": gate, "status": "True", "reason": "Opened"}}})
	opened := n.awaitSeen(pod, "gated open", func(p *v1.Pod) bool { return conditionOf(p, gate) == v1.ConditionTrue })
	n.set(opened, runningStatus(opened, true)) // what a worker does when it sees the gate
	n.flush()
	got = n.server.GetPod(t, ns, "web")
	if conditionOf(got, v1.PodReady) != v1.ConditionTrue || conditionOf(got, gate) != v1.ConditionTrue {
		t.Errorf("after the gate opened: ready %s, gate %s; want both True", conditionOf(got, v1.PodReady), conditionOf(got, gate))
	}
}

// patchStatus writes to a pod's status as another writer.
func (n *node) patchStatus(pod *v1.Pod, change map[string]any) {
	n.Helper()
	patch, err := json.Marshal(map[string]any{"status": change})
	if err != nil {
		n.Fatal(err)
	}
	_, err = n.server.Admin().CoreV1().Pods(pod.Namespace).Patch(n.Context(), pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		n.Fatal(err)
	}
}

func TestRealServer_ASecondWritersChangeIsRepairedOnItsWatchEvent(t *testing.T) {
	// The full pass is an hour away: only the watch event can bring the repair.
	n := startNode(t, shared.Server(t), "drift", func(o *status.Options) { o.ResyncPeriod = time.Hour })
	ns := n.server.Namespace(t)
	pod := n.create(ns, "web")
	n.set(pod, runningStatus(pod, true))
	n.flush()
	before := n.server.GetPod(t, ns, "web")
	n.patchStatus(before, map[string]any{"conditions": []map[string]any{{"type": "Ready", "status": "False", "lastTransitionTime": metav1.NewTime(time.Now().Add(time.Second).Truncate(time.Second))}}})
	seenFalse := n.await(ns, "web", "repaired", func(p *v1.Pod) bool {
		return conditionOf(p, v1.PodReady) == v1.ConditionTrue && p.ResourceVersion != before.ResourceVersion
	})
	if seenFalse.Status.Phase != v1.PodRunning {
		t.Errorf("the repaired status is %+v", seenFalse.Status)
	}
}

func TestRealServer_APodOfTheSameNameIsNotTouched(t *testing.T) {
	n := startNode(t, shared.Server(t), "recreate")
	ns := n.server.Namespace(t)
	old := n.create(ns, "web")
	n.set(old, runningStatus(old, true))
	n.flush()
	now := int64(0)
	if err := n.server.Admin().CoreV1().Pods(ns).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	fresh := n.create(ns, "web")
	n.set(old, endedStatus(old, 1))
	if err := n.manager.TerminatePod(old); err != nil {
		t.Fatal(err)
	}
	n.flush()
	if got := n.server.GetPod(t, ns, "web"); got.UID != fresh.UID || got.Status.Phase != v1.PodPending {
		t.Errorf("the new pod is %s, %s; want it untouched", got.UID, got.Status.Phase)
	}
	n.set(fresh, runningStatus(fresh, true))
	n.flush()
	if got := n.server.GetPod(t, ns, "web"); got.Status.Phase != v1.PodRunning {
		t.Errorf("the new pod's own status is %s, want Running", got.Status.Phase)
	}
}

func TestRealServer_AForceDeletedPodIsLeftAlone(t *testing.T) {
	n := startNode(t, shared.Server(t), "force-deleted")
	ns := n.server.Namespace(t)
	pod := n.create(ns, "web")
	n.set(pod, runningStatus(pod, true))
	n.flush()
	now := int64(0)
	if err := n.server.Admin().CoreV1().Pods(ns).Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	n.awaitGone(ns, "web", pod.UID)
	n.set(pod, endedStatus(pod, 0))
	n.flush() // does not wait for a pod that the API does not have
	if pending := n.manager.Pending(); len(pending) != 1 || pending[0].Err != nil {
		t.Errorf("pending is %+v, want the pod held as gone, without an error", pending)
	}
}

func TestRealServer_ADeniedPodIsPendingWithTheReasonAndDelaysNoOther(t *testing.T) {
	server := shared.Server(t)
	n := startNode(t, server, "denied")
	ns := n.server.Namespace(t)
	server.NodeConfig(t, "another")
	foreign := server.CreatePod(t, controlplanetest.Pod(ns, "not-ours", "another"))
	n.table.Set(foreign)
	n.set(foreign, runningStatus(foreign, true))
	own := n.create(ns, "ours")
	n.set(own, runningStatus(own, true))
	n.await(ns, "ours", "running", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
	n.until("the denial", func() bool {
		pending := n.manager.Pending()
		return len(pending) == 1 && apierrors.IsForbidden(pending[0].Err) && pending[0].Name == "not-ours"
	})
	if got := server.GetPod(t, ns, "not-ours"); got.Status.Phase != v1.PodPending {
		t.Errorf("the foreign pod is %s", got.Status.Phase)
	}
}

func TestRealServer_KilledInTheMiddleOf300Changes(t *testing.T) {
	server := controlplanetest.Start(t)
	n := startNode(t, server, "killed", func(o *status.Options) { o.RequestTimeout = 5 * time.Second })
	ns := server.Namespace(t)
	var all []*v1.Pod
	for i := range 300 {
		all = append(all, n.create(ns, fmt.Sprintf("pod-%03d", i)))
	}
	for i, pod := range all {
		if i == len(all)/2 {
			server.Kill(t)
		}
		n.set(pod, runningStatus(pod, true))
	}
	server.Restart(t)
	n.flush() // no new event: what was stored gets there by itself
	list, err := server.Admin().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i := range list.Items {
		if list.Items[i].Status.Phase == v1.PodRunning && conditionOf(&list.Items[i], v1.PodReady) == v1.ConditionTrue {
			right++
		}
	}
	if right != len(all) {
		t.Errorf("%d of %d pods are right after the server was killed and came back", right, len(all))
	}
	if pending := n.manager.Pending(); len(pending) > 0 {
		t.Errorf("still pending: %+v", pending)
	}
}

// The burst of design.md, for its requests; how fast it is, is for `make bench`.
func TestRealServer_BurstOf500TakesOneRequestAChange(t *testing.T) {
	// Neither a full pass nor a timeout adds requests, however slow the machine is.
	n := startNode(t, shared.Server(t), "burst", func(o *status.Options) { o.ResyncPeriod, o.RequestTimeout = time.Hour, patience })
	ns := n.server.Namespace(t)
	var all []*v1.Pod
	for i := range 500 {
		all = append(all, n.create(ns, fmt.Sprintf("pod-%03d", i)))
	}
	n.requests.writes.Store(0)
	n.requests.reads.Store(0)
	begin := time.Now()
	for _, pod := range all {
		n.set(pod, runningStatus(pod, true))
	}
	n.flush()
	took := time.Since(begin)
	n.stop() // Flush at shutdown: everything is there
	writes, reads := n.requests.writes.Load(), n.requests.reads.Load()
	ratio := float64(writes+reads) / float64(len(all))
	t.Logf("burst of %d changes: %d writes, %d reads, %.3f requests a change, %d pending, %v", len(all), writes, reads, ratio, len(n.manager.Pending()), took.Round(time.Millisecond))
	if ratio > 1.01 {
		t.Errorf("%.3f requests a change, want at most 1.01", ratio)
	}
	if pending := n.manager.Pending(); len(pending) > 0 {
		t.Errorf("%d pods are pending at the end", len(pending))
	}
	list, err := n.server.Admin().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Status.Phase != v1.PodRunning {
			t.Errorf("%s is %s", list.Items[i].Name, list.Items[i].Status.Phase)
		}
	}
}

// A server that has just started does not find the pods that a node wants to delete, until
// its admission knows them. That must not be taken for their end.
func TestRealServer_FinishedPodsGoAfterTheServerWasKilled(t *testing.T) {
	server := controlplanetest.Start(t)
	n := startNode(t, server, "doomed", func(o *status.Options) { o.RequestTimeout = 5 * time.Second })
	ns := server.Namespace(t)
	var doomed []*v1.Pod
	for i := range 40 {
		pod := n.create(ns, fmt.Sprintf("pod-%02d", i))
		grace := int64(600)
		if err := server.Admin().CoreV1().Pods(ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
		pod = n.await(ns, pod.Name, "deleted with grace", func(p *v1.Pod) bool { return p.DeletionTimestamp != nil })
		n.set(pod, endedStatus(pod, 0))
		doomed = append(doomed, pod)
	}
	n.flush()
	server.Kill(t)
	for _, pod := range doomed {
		if err := n.manager.TerminatePod(pod); err != nil {
			t.Fatal(err)
		}
	}
	server.Restart(t)
	for _, pod := range doomed {
		n.awaitGone(ns, pod.Name, pod.UID)
	}
}

// A StatefulSet's pod is forced away and created again on another node. The server denies this
// node everything about the name, whatever the UID.
func TestRealServer_APodRecreatedOnAnotherNodeIsGone(t *testing.T) {
	server := shared.Server(t)
	n := startNode(t, server, "left")
	ns := n.server.Namespace(t)
	server.NodeConfig(t, "other")
	pod := n.create(ns, "db-0")
	n.set(pod, runningStatus(pod, true))
	n.flush()
	now := int64(0)
	if err := server.Admin().CoreV1().Pods(ns).Delete(t.Context(), "db-0", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	n.awaitGone(ns, "db-0", pod.UID)
	fresh := server.CreatePod(t, controlplanetest.Pod(ns, "db-0", "other"))
	n.set(pod, endedStatus(pod, 1))
	n.flush()
	if pending := n.manager.Pending(); len(pending) != 1 || pending[0].Reason == "" {
		t.Errorf("pending is %+v, want the pod held as gone", pending)
	}
	if got := server.GetPod(t, ns, "db-0"); got.UID != fresh.UID || got.Status.Phase != v1.PodPending {
		t.Errorf("the new pod was touched: %s %s", got.UID, got.Status.Phase)
	}
}
