package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is what survives a restart of the process: the runtime, the journal, and what
// the sources say.
type machine struct {
	rt      *runtimefake.Runtime
	journal *journal.Memory
	table   *pods.Table
}

func newMachine() *machine {
	return &machine{rt: runtimefake.New(), journal: journal.NewMemory(), table: pods.New()}
}

// node is one process on a machine.
type node struct {
	*machine
	t       testing.TB
	workers *worker.Workers
	status  *status.Manager
	events  *events
	begin   time.Time
	stop    func()
}

// reporter is the manager with what it keeps of resizes.
type reporter struct {
	*status.Manager
	*status.Resizes
}

// run starts a process on the machine; it ends with the test, or by stop. Sources have
// not spoken. It must be called in a bubble.
func (m *machine) run(t testing.TB, change ...func(*worker.Options)) *node {
	t.Helper()
	n := &node{machine: m, t: t, events: &events{}, begin: time.Now()}
	manager, err := status.New(status.Options{Pods: m.table, Journal: m.journal, Safety: n, Client: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	n.status = manager
	options := worker.Options{
		Runtime: m.rt, Status: reporter{manager, manager.Resizes()}, Recorder: n.events,
		HostIPs: func() []string { return []string{"192.0.2.1"} },
		Logger:  slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&options)
	}
	if n.workers, err = worker.New(options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.workers.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(n.stop)
	synctest.Wait()
	return n
}

// silent is an API server that is down: ends are kept until it has heard of them. The
// manager is not run, so that nothing asks it.
type silent struct{ status.Client }

// CouldHaveRunningContainers lets the manager ask the workers, which are made after it.
func (n *node) CouldHaveRunningContainers(pod *v1.Pod) bool {
	return n.workers.CouldHaveRunningContainers(pod)
}

// story runs a test in a bubble on a fresh machine whose sources have spoken.
func story(t *testing.T, tell func(n *node), change ...func(*worker.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newMachine().run(t, change...)
		n.workers.SourcesReady()
		tell(n)
		n.stop()
	})
}

// update is what the sources do with a new or changed pod.
func (n *node) update(pod *v1.Pod) {
	n.table.Set(pod)
	n.workers.Update(pod)
	synctest.Wait()
}

func (n *node) remove(pod *v1.Pod) {
	n.table.Remove(pod)
	n.workers.Remove(pod)
	synctest.Wait()
}

// delete is a deletion in the API with a grace period.
func (n *node) delete(pod *v1.Pod, grace int64) *v1.Pod {
	gone := pod.DeepCopy()
	at := metav1.Now()
	gone.DeletionTimestamp, gone.DeletionGracePeriodSeconds = &at, &grace
	n.update(gone)
	return gone
}

func (n *node) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// get is what the node says of the pod.
func (n *node) get(pod *v1.Pod) v1.PodStatus {
	n.t.Helper()
	got, ok := n.status.GetPodStatus(pod.UID)
	if !ok {
		n.t.Fatalf("pod %s has no status after %s; calls: %q", pod.Name, time.Since(n.begin), n.rt.Calls())
	}
	return got
}

// container is what the node says of a container.
func (n *node) container(pod *v1.Pod, name string) v1.ContainerStatus {
	n.t.Helper()
	got := n.get(pod)
	for _, c := range slices.Concat(got.InitContainerStatuses, got.ContainerStatuses) {
		if c.Name == name {
			return c
		}
	}
	n.t.Fatalf("pod %s has no container %s: %+v", pod.Name, name, got)
	return v1.ContainerStatus{}
}

// running is the newest attempt of a container, or the zero value.
func (n *node) newest(pod *v1.Pod, name string) runtime.Container {
	n.t.Helper()
	found, err := n.rt.Pod(n.t.Context(), pod.UID)
	if err != nil {
		return runtime.Container{}
	}
	for _, c := range found.Containers {
		if c.Name == name {
			return c
		}
	}
	return runtime.Container{}
}

// starts are the starts of containers so far: "init/0".
func (n *node) starts() []string {
	var all []string
	for _, call := range n.rt.Calls() {
		if what, ok := strings.CutPrefix(call, "StartContainer "); ok {
			_, container, _ := strings.Cut(what, "/")
			all = append(all, container)
		}
	}
	return all
}

func (n *node) wantStarts(what string, want ...string) {
	n.t.Helper()
	if got := n.starts(); !slices.Equal(got, want) {
		n.t.Errorf("%s (after %s): started %q, want %q", what, time.Since(n.begin), got, want)
	}
}

func (n *node) wantPhase(pod *v1.Pod, what string, want v1.PodPhase) {
	n.t.Helper()
	if got := n.get(pod); got.Phase != want {
		n.t.Errorf("%s (after %s): phase %s (%s: %s), want %s", what, time.Since(n.begin), got.Phase, got.Reason, got.Message, want)
	}
}

// wantState compares the state of a container in the form that describe gives it.
func (n *node) wantState(pod *v1.Pod, name, what, want string) {
	n.t.Helper()
	if got := describe(n.container(pod, name)); got != want {
		n.t.Errorf("%s (after %s): container %s is %q, want %q", what, time.Since(n.begin), name, got, want)
	}
}

// describe puts a container status in one line: "Running restarts=1 last=3:Error".
func describe(c v1.ContainerStatus) string {
	var b strings.Builder
	switch {
	case c.State.Running != nil:
		b.WriteString("Running")
	case c.State.Terminated != nil:
		fmt.Fprintf(&b, "Terminated %d:%s", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
	case c.State.Waiting != nil:
		fmt.Fprintf(&b, "Waiting %s", c.State.Waiting.Reason)
	}
	if c.RestartCount > 0 {
		fmt.Fprintf(&b, " restarts=%d", c.RestartCount)
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		fmt.Fprintf(&b, " last=%d:%s", last.ExitCode, last.Reason)
	}
	return b.String()
}

// events records events as "container reason: message".
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) Event(_ *v1.Pod, container, _, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, strings.TrimSpace(container+" "+reason+": "+message))
}

func (e *events) has(want string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.all, want)
}

// begins reports whether there was an event whose text begins so.
func (e *events) begins(want string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.all, func(said string) bool { return strings.HasPrefix(said, want) })
}

// testLog hands log lines to the test, so that they show up beside a failure.
type testLog struct{ t testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// newPod makes a pod that restarts always, of containers named by their order.
func newPod(name string, containers ...v1.Container) *v1.Pod {
	if len(containers) == 0 {
		containers = []v1.Container{{Name: "main"}}
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name + "-uid"), Generation: 1},
		Spec: v1.PodSpec{
			RestartPolicy:                 v1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: new(int64(30)),
			Containers:                    containers,
		},
	}
}

func withPolicy(pod *v1.Pod, policy v1.RestartPolicy) *v1.Pod {
	pod.Spec.RestartPolicy = policy
	return pod
}

func withInit(pod *v1.Pod, containers ...v1.Container) *v1.Pod {
	pod.Spec.InitContainers = containers
	return pod
}

func sidecar(name string) v1.Container {
	return v1.Container{Name: name, RestartPolicy: new(v1.ContainerRestartPolicyAlways)}
}

// static makes a pod one of a manifest.
func static(pod *v1.Pod, uid types.UID) *v1.Pod {
	pod.UID = uid
	pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	return pod
}

// lives scripts containers by name.
func lives(byName map[string]runtimefake.Behavior) func(*v1.Pod, *v1.Container, int) runtimefake.Behavior {
	return func(_ *v1.Pod, c *v1.Container, _ int) runtimefake.Behavior { return byName[c.Name] }
}
