package status

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
)

func TestMain(m *testing.M) {
	metrics.Register()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// node is what the manager is given by a kubelet.
type node struct {
	pods    kubepod.Manager
	rootDir string

	mu      sync.Mutex
	running map[types.UID]bool
	started []types.UID
	deleted []types.UID
}

func newNode(t *testing.T) *node {
	t.Helper()
	return &node{pods: kubepod.NewBasicPodManager(), rootDir: t.TempDir(), running: map[types.UID]bool{}}
}

func (n *node) StatusHost() (string, string, int) { return "adapter-node", n.rootDir, 7 }

func (n *node) PodCouldHaveRunningContainers(pod *v1.Pod) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running[pod.UID]
}

func (n *node) RecordStatusUpdated(pod *v1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if pod.Status.Phase == v1.PodRunning {
		n.started = append(n.started, pod.UID)
	}
}

func (n *node) DeletePodStartupState(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deleted = append(n.deleted, uid)
}

func (n *node) manager(client kubernetes.Interface) *manager {
	return NewManager(client, n.pods, n, n).(*manager)
}

func aPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "5", Generation: 3},
		Spec:       v1.PodSpec{NodeName: "adapter-node", RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	}
}

func running(id string) v1.PodStatus {
	started := true
	return v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
		Name: "main", ContainerID: id, Ready: true, Started: &started, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	}}}
}

func succeeded(id string) v1.PodStatus {
	return v1.PodStatus{Phase: v1.PodSucceeded, ContainerStatuses: []v1.ContainerStatus{{
		Name: "main", ContainerID: id, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 0, Reason: "Completed", ContainerID: id}},
	}}}
}

var logger = klog.Background()

// The end of a pod that the API server never heard of is there after a crash of the kubelet, and no report of the next kubelet, which has not
// seen the container, takes it away.
func TestEndSurvivesTheKubelet(t *testing.T) {
	n, pod := newNode(t), aPod("job")
	n.pods.AddPod(pod)
	down := fake.NewClientset(pod)
	down.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("down") })
	first := n.manager(down)
	ctx, cancel := context.WithCancel(t.Context())
	first.Start(ctx)
	first.SetPodStatus(logger, pod, running("containerd://1"))
	first.SetPodStatus(logger, pod, succeeded("containerd://1"))
	cancel()
	closeJournal(t, first)

	next := n.manager(fake.NewClientset(pod))
	status, ok := next.GetPodStatus(pod.UID)
	if !ok || status.Phase != v1.PodSucceeded || status.ContainerStatuses[0].State.Terminated == nil {
		t.Fatalf("after a restart the pod is %q (known: %t), want the end that was seen", status.Phase, ok)
	}
	next.SetPodStatus(logger, pod, v1.PodStatus{Phase: v1.PodPending})
	if status, _ := next.GetPodStatus(pod.UID); status.Phase != v1.PodSucceeded {
		t.Errorf("a report of the next kubelet has made the pod %q again", status.Phase)
	}
	closeJournal(t, next)
}

// The kubelet's table of pods may be older than the pod that is reported.
func TestFirstStatus_KeepsTheStartTimeOfTheReportedPod(t *testing.T) {
	n, pod := newNode(t), aPod("web")
	n.pods.AddPod(pod)
	m := n.manager(nil)
	defer closeJournal(t, m)
	reported, began := pod.DeepCopy(), metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	reported.Status.StartTime = &began
	if status, _ := m.SetPodStatus(logger, reported, running("containerd://1")); !status.StartTime.Equal(&began) {
		t.Errorf("start time %v, want %v", status.StartTime, began)
	}
	later := metav1.Now()
	reported.Status.StartTime = &later
	if status, _ := m.SetPodStatus(logger, reported, running("containerd://2")); !status.StartTime.Equal(&began) {
		t.Errorf("start time %v after the second report, want the first one, %v", status.StartTime, began)
	}
}

// A history goes on in the next kubelet, and says of a pod that went meanwhile that it is gone.
func TestHistorySurvivesTheKubelet(t *testing.T) {
	n, pod := newNode(t), aPod("web")
	n.pods.AddPod(pod)
	first := n.manager(nil)
	ctx, cancel := context.WithCancel(t.Context())
	first.Start(ctx)
	first.SetPodStatus(logger, pod, running("containerd://1"))
	cancel()
	closeJournal(t, first)

	n.pods.RemovePod(pod)
	next := n.manager(nil)
	before, ok := next.history.Pod(pod.Namespace, pod.Name)
	if !ok || len(before.Records) == 0 || before.Gone != nil {
		t.Fatalf("after a restart the history is %+v (known: %t), want that of a pod that is there", before, ok)
	}
	next.RemoveOrphanedStatuses(logger, map[types.UID]bool{})
	if after, _ := next.history.Pod(pod.Namespace, pod.Name); after.Gone == nil {
		t.Errorf("the history is %+v, want that of a pod that is gone", after)
	}
	closeJournal(t, next)
}

// closeJournal lets the next manager of the test open the journal: the lock of a kubelet goes with its process.
func closeJournal(t *testing.T, m *manager) {
	t.Helper()
	if m.journal == nil {
		t.Fatal("the manager has no journal")
	}
	m.running.Wait()
	if err := m.journal.Close(); err != nil {
		t.Fatal(err)
	}
}

// A kubelet whose journal cannot be opened runs without one.
func TestNoJournal_IsNoReasonToFail(t *testing.T) {
	n := newNode(t)
	if err := os.WriteFile(filepath.Join(n.rootDir, "statusd"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, pod := n.manager(nil), aPod("web")
	if m.journal != nil {
		t.Error("a file in the place of the directory is a journal")
	}
	n.pods.AddPod(pod)
	if status, changed := m.SetPodStatus(logger, pod, running("containerd://1")); !changed || status.Phase != v1.PodRunning {
		t.Errorf("status is %q (changed: %t), want Running", status.Phase, changed)
	}
}

// The requests are limited as the kubelet's configuration says.
func TestLimitsAreTheKubelets(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1", QPS: 33, Burst: 44})
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	if o := optionsFor(client, n); o.QPS != 33 || o.Burst != 7 {
		t.Errorf("QPS %v, burst %d; want 33 of the client and 7 of the configuration", o.QPS, o.Burst)
	}
	if unlimited, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://127.0.0.1:1", QPS: -1}, http.DefaultClient); err != nil {
		t.Fatal(err)
	} else if o := optionsFor(unlimited, n); o.QPS != 0 {
		t.Errorf("QPS %v for a client without a limit, want 0", o.QPS)
	}
}

// A pod in deletion whose end was reported is deleted from the API, once no container can run.
func TestDeletedPod_IsDeletedWhenItHasEnded(t *testing.T) {
	n, pod := newNode(t), aPod("web")
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	pod.Finalizers = []string{"example.com/kept"} // the fake clientset has no pods in deletion without
	client := fake.NewClientset(pod)
	n.pods.AddPod(pod)
	n.running[pod.UID] = true
	m := n.manager(client)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx)
	}()
	m.SetPodStatus(logger, pod, succeeded("containerd://1"))
	if err := m.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := client.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{}); err != nil || got.Status.Phase == v1.PodSucceeded {
		t.Errorf("phase %v, %v: an end was published while a container could run", got.Status.Phase, err)
	}
	n.mu.Lock()
	n.running[pod.UID] = false
	n.mu.Unlock()
	m.TerminatePod(logger, pod)
	deletes := func() bool {
		for _, a := range client.Actions() {
			if a.GetVerb() == "delete" {
				return true
			}
		}
		return false
	}
	wait, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	for !deletes() {
		select {
		case <-wait.Done():
			t.Fatalf("the pod was not deleted; requests: %v", client.Actions())
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	<-done
	closeJournal(t, m)
}

// received is a receiver of changes.
type received struct{ calls []string }

func (r *received) OnPodUpdated(pod *v1.Pod, status v1.PodStatus, added bool) {
	call := "updated " + string(status.Phase)
	if added {
		call = "added " + string(status.Phase)
	}
	if pod.Status.Phase != status.Phase {
		call += " with a pod of another status"
	}
	r.calls = append(r.calls, call)
}

func (r *received) OnPodRemoved(pod *v1.Pod) { r.calls = append(r.calls, "removed "+pod.Name) }

func TestNotifiersLearnOfEachChange(t *testing.T) {
	n, pod, got := newNode(t), aPod("web"), &received{}
	n.pods.AddPod(pod)
	m := n.manager(nil)
	m.AddPodUpdateNotifier(got)
	m.SetPodStatus(logger, pod, running("containerd://1"))
	m.SetPodStatus(logger, pod, running("containerd://1")) // nothing new
	container := kubecontainer.ContainerID{Type: "containerd", ID: "1"}
	m.SetContainerReadiness(logger, pod.UID, container, false)
	m.SetContainerReadiness(logger, pod.UID, container, false) // nothing new
	m.SetContainerReadiness(logger, pod.UID, kubecontainer.ContainerID{Type: "containerd", ID: "other"}, true)
	m.SetContainerStartup(logger, pod.UID, container, false)
	m.TerminatePod(logger, pod)
	want := []string{"added Running", "updated Running", "updated Running", "removed web"}
	if len(got.calls) != len(want) {
		t.Fatalf("calls %q, want %q", got.calls, want)
	}
	for i := range want {
		if got.calls[i] != want[i] {
			t.Errorf("call %d is %q, want %q", i, got.calls[i], want[i])
		}
	}
	closeJournal(t, m)
}

// The start of a pod counts when the API server has it, and its state is dropped with the pod.
func TestStartupLatency(t *testing.T) {
	n, pod := newNode(t), aPod("web")
	n.pods.AddPod(pod)
	m := n.manager(fake.NewClientset(pod))
	m.SetPodStatus(logger, pod, running("containerd://1"))
	n.mu.Lock()
	if len(n.started) != 0 {
		t.Error("a start was recorded before anything was sent")
	}
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx)
	}()
	if err := m.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	m.RemoveOrphanedStatuses(logger, map[types.UID]bool{})
	cancel()
	<-done
	if len(n.started) != 1 || len(n.deleted) != 1 {
		t.Errorf("starts %v, ends %v; want one of each", n.started, n.deleted)
	}
	closeJournal(t, m)
}

func TestMetrics_OfTheKubelet(t *testing.T) {
	metrics.TerminatedContainersTotal.Reset()
	n, pod := newNode(t), aPod("job")
	n.pods.AddPod(pod)
	m := n.manager(nil)
	m.SetPodStatus(logger, pod, running("containerd://1"))
	m.SetPodStatus(logger, pod, succeeded("containerd://1"))
	m.SetPodStatus(logger, pod, succeeded("containerd://1"))
	if got, err := testutil.GetCounterMetricValue(metrics.TerminatedContainersTotal.WithLabelValues(metrics.Container, "0", "Completed")); err != nil || got != 1 {
		t.Errorf("%v containers have ended (%v), want 1", got, err)
	}
	gauges := func() (deferred, infeasible, inProgress float64) {
		t.Helper()
		deferred, err := testutil.GetGaugeMetricValue(metrics.PodPendingResizes.WithLabelValues("deferred"))
		if err != nil {
			t.Fatal(err)
		}
		infeasible, err = testutil.GetGaugeMetricValue(metrics.PodPendingResizes.WithLabelValues("infeasible"))
		if err != nil {
			t.Fatal(err)
		}
		inProgress, err = testutil.GetGaugeMetricValue(metrics.PodInProgressResizes)
		if err != nil {
			t.Fatal(err)
		}
		return deferred, infeasible, inProgress
	}
	check := func(step string, wantDeferred, wantInfeasible, wantInProgress float64) {
		t.Helper()
		if d, i, p := gauges(); d != wantDeferred || i != wantInfeasible || p != wantInProgress {
			t.Errorf("%s: deferred %v, infeasible %v, in progress %v; want %v, %v, %v", step, d, i, p, wantDeferred, wantInfeasible, wantInProgress)
		}
	}
	m.SetPodResizePendingCondition(pod.UID, v1.PodReasonDeferred, "", 3)
	check("deferred", 1, 0, 0)
	m.SetPodResizePendingCondition(pod.UID, v1.PodReasonInfeasible, "", 3)
	check("infeasible", 0, 1, 0)
	if !m.IsPodResizeInfeasible(pod.UID) || m.IsPodResizeDeferred(pod.UID) {
		t.Error("the resize is not infeasible, or deferred")
	}
	m.ClearPodResizePendingCondition(pod.UID)
	m.SetPodResizeInProgressCondition(pod.UID, "", "", 3)
	check("in progress", 0, 0, 1)
	m.RemoveOrphanedStatuses(logger, map[types.UID]bool{})
	check("orphaned", 0, 0, 0)
	closeJournal(t, m)
}

func TestNeedToReconcilePodReadiness(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	pod := aPod("web")
	pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "gate"}}
	pod.Spec.InitContainers = []v1.Container{{Name: "sidecar", RestartPolicy: &always}}
	pod.Status = running("containerd://1")
	pod.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "sidecar", Ready: true}}
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}, {Type: "gate", Status: v1.ConditionTrue}}
	if NeedToReconcilePodReadiness(pod) {
		t.Error("a pod with a ready sidecar and an open gate is to be synced again")
	}
	pod.Status.Conditions[1].Status = v1.ConditionFalse
	if !NeedToReconcilePodReadiness(pod) {
		t.Error("a pod whose gate has closed is not to be synced again")
	}
	pod.Spec.ReadinessGates = nil
	if NeedToReconcilePodReadiness(pod) {
		t.Error("a pod without gates is to be synced again")
	}
}

func TestServe_ExplainsAPod(t *testing.T) {
	n, pod := newNode(t), aPod("web")
	n.pods.AddPod(pod)
	m := n.manager(nil)
	waiting := v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{{
		Name: "main", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}},
	}}}
	m.SetPodStatus(logger, pod, waiting)
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := get("/statusd/explain?namespace=default&name=web"); code != http.StatusOK || !strings.Contains(body, "no such image") {
		t.Errorf("answer %d, %s; want the reason why the pod waits", code, body)
	}
	if code, _ := get("/statusd/explain?namespace=default&name=other"); code != http.StatusNotFound {
		t.Errorf("answer %d for a pod that is not there, want 404", code)
	}
	if code, body := get("/statusd/history?namespace=default&name=web"); code != http.StatusOK || !strings.Contains(body, "ImagePullBackOff") {
		t.Errorf("answer %d, %s; want the record that the container waits", code, body)
	}
	if code, _ := get("/statusd/history?namespace=default&name=other"); code != http.StatusNotFound {
		t.Errorf("answer %d for the history of a pod that was never there, want 404", code)
	}
	if code, body := get("/statusd/delivery"); code != http.StatusOK || !strings.Contains(body, `"name":"web"`) || !strings.Contains(body, `"version":1`) {
		t.Errorf("answer %d, %s; want version 1 of the pod", code, body)
	}
	closeJournal(t, m)
}
