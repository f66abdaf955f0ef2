package observer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/machine"
)

const testNode = "n1"

// world is a node with four sides in memory, whose clock is that of the test.
type world struct {
	t       *testing.T
	client  *fake.Clientset
	changed Changed

	mu        sync.Mutex // guards the fields below
	api       map[types.UID]*v1.Pod
	kubelet   map[types.UID]*v1.Pod
	runtime   map[string]audit.Container
	sandboxes map[string]audit.Sandbox
	// frozen: the kubelet's process is stopped, and renews no lease.
	frozen    bool
	since     time.Time
	renewed   time.Time
	refreshed map[audit.Side]int
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, client: fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: testNode}}), since: time.Now().Add(-time.Hour),
		api: map[types.UID]*v1.Pod{}, kubelet: map[types.UID]*v1.Pod{}, runtime: map[string]audit.Container{}, sandboxes: map[string]audit.Sandbox{},
		refreshed: map[audit.Side]int{},
	}
	return w
}

// add makes a pod with one container that runs, known to all sides.
func (w *world) add(name string) types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid, born := types.UID("uid-"+name), w.since
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid, CreationTimestamp: metav1.NewTime(born)},
		Spec:       v1.PodSpec{NodeName: testNode, Containers: []v1.Container{{Name: "main"}}},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, StartTime: &metav1.Time{Time: born},
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(born)}},
			ContainerStatuses: []v1.ContainerStatus{{
				Name: "main", Ready: true, ContainerID: "containerd://c-" + name,
				State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(born)}},
			}},
		},
	}
	w.api[uid], w.kubelet[uid] = pod, pod
	w.sandboxes["s-"+name] = audit.Sandbox{ID: "s-" + name, UID: uid, Namespace: "shop", Name: name, Ready: true, Created: born}
	w.runtime["c-"+name] = audit.Container{
		ID: "c-" + name, SandboxID: "s-" + name, UID: uid, Namespace: "shop", PodName: name, Name: "main",
		State: audit.ContainerRunning, Created: born, Started: born,
	}
	return uid
}

// adopt makes what add makes, of a pod of a real API server.
func (w *world) adopt(pod *v1.Pod) {
	made := w.add(pod.Name)
	adopted := pod.DeepCopy()
	adopted.Status = w.kubelet[made].Status
	delete(w.api, made)
	delete(w.kubelet, made)
	w.kubelet[pod.UID] = adopted
	sandbox, container := w.sandboxes["s-"+pod.Name], w.runtime["c-"+pod.Name]
	sandbox.UID, sandbox.Namespace, container.UID, container.Namespace = pod.UID, pod.Namespace, pod.UID, pod.Namespace
	w.sandboxes["s-"+pod.Name], w.runtime["c-"+pod.Name] = sandbox, container
}

// kill ends the container of a pod in the runtime.
func (w *world) kill(name string) {
	w.mu.Lock()
	c := w.runtime["c-"+name]
	c.State, c.ExitCode, c.Finished, c.Reason = audit.ContainerExited, 137, time.Now(), "Error"
	w.runtime["c-"+name] = c
	w.mu.Unlock()
	w.changed(audit.SideRuntime, c.UID)
}

// report has the kubelet, and then the API, know that the container has ended.
func (w *world) report(name string) {
	w.mu.Lock()
	uid := w.runtime["c-"+name].UID
	pod := w.kubelet[uid].DeepCopy()
	s := &pod.Status.ContainerStatuses[0]
	s.Ready, s.State = false, v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ExitCode: 137, Reason: "Error", ContainerID: s.ContainerID, StartedAt: metav1.NewTime(w.since), FinishedAt: metav1.NewTime(w.runtime["c-"+name].Finished)}}
	pod.Status.Conditions[0].Status = v1.ConditionFalse
	w.kubelet[uid] = pod
	w.mu.Unlock()
	w.changed(audit.SideKubelet, uid)
	time.Sleep(10 * time.Millisecond)
	w.mu.Lock()
	w.api[uid] = pod
	w.mu.Unlock()
	w.changed(audit.SideAPI, uid)
}

func (w *world) freeze(frozen bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen, w.renewed = frozen, time.Now()
}

// answer is that of a side that answers always.
func (w *world) answer(from string) audit.Answer {
	return audit.Answer{From: from, At: time.Now(), Since: w.since}
}

func sightings(pods map[types.UID]*v1.Pod, at time.Time) map[types.UID]audit.Sighting {
	all := map[types.UID]audit.Sighting{}
	for uid, pod := range pods {
		all[uid] = audit.Sighting{Pod: pod, At: at}
	}
	return all
}

// The sides of a world.
type (
	apiOf     struct{ *world }
	kubeletOf struct{ *world }
	runtimeOf struct{ *world }
	machineOf struct{ *world }
)

func (w *world) sides() Sides {
	return Sides{API: apiOf{w}, Kubelet: kubeletOf{w}, Runtime: runtimeOf{w}, Machine: machineOf{w}}
}

func (w *world) Run(ctx context.Context) error { <-ctx.Done(); return nil }

func (w *world) refresh(side audit.Side) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refreshed[side]++
}

func (a apiOf) Confirm()                     { a.refresh(audit.SideAPI) }
func (k kubeletOf) Refresh()                 { k.refresh(audit.SideKubelet) }
func (r runtimeOf) Refresh()                 { r.refresh(audit.SideRuntime) }
func (m machineOf) Refresh()                 { m.refresh(audit.SideMachine) }
func (r runtimeOf) Calls() map[string]uint64 { return map[string]uint64{"ListContainers": 3} }

func (a apiOf) Facts() audit.API {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	renewed := now
	if a.frozen {
		renewed = a.renewed
	}
	seconds := int32(40)
	return audit.API{
		APIAnswer: a.answer("https://api"), APIConfirmed: now, APIPods: sightings(a.api, now),
		NodeObject: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: testNode, UID: "node-uid"}, Status: v1.NodeStatus{
			NodeInfo:   v1.NodeSystemInfo{ContainerRuntimeVersion: "containerd://2.1"},
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}},
		NodeAt: now, LeaseAt: renewed, ClockAt: now, ClockError: time.Millisecond,
		Lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: &seconds}},
	}
}

func (k kubeletOf) Facts() audit.Kubelet {
	k.mu.Lock()
	defer k.mu.Unlock()
	return audit.Kubelet{KubeletAnswer: k.answer("pods.sock"), KubeletPods: sightings(k.kubelet, time.Now()), KubeletStatuses: true}
}

func (r runtimeOf) Facts() audit.Runtime {
	r.mu.Lock()
	defer r.mu.Unlock()
	return audit.Runtime{RuntimeAnswer: r.answer("containerd.sock"), Sandboxes: maps.Clone(r.sandboxes), Containers: maps.Clone(r.runtime)}
}

func (m machineOf) Facts() audit.Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	facts := audit.Machine{
		MachineAnswer: m.answer("/"), PodDirs: map[types.UID]audit.PodDir{}, Cgroups: map[types.UID]audit.Cgroup{}, ManifestsKnown: true,
		Process: &audit.Process{PID: 4711, Started: m.since, Stopped: m.frozen}, Boot: m.since,
	}
	for uid := range m.kubelet {
		facts.PodDirs[uid] = audit.PodDir{Path: fmt.Sprint("/var/lib/kubelet/pods/", uid), Changed: m.since, At: time.Now()}
		facts.Cgroups[uid] = audit.Cgroup{Path: fmt.Sprint("/kubepods/pod", uid), Processes: 1, At: time.Now()}
	}
	return facts
}

// observer makes an observer of the world that serves nothing.
func (w *world) observer(change func(*Config)) *Observer {
	w.t.Helper()
	config := Default()
	config.Machine = machine.Config{NoKernelLog: true, Units: map[string]string{}, Disks: []string{}} // reading the logs of this machine would wait outside of virtual time
	config.NodeName, config.StateDir = testNode, w.t.TempDir()
	config.HealthzBindAddress, config.QuerySocket = "", "none"
	if change != nil {
		change(&config)
	}
	o, err := New(config, w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// options are those of an observer of the world.
func (w *world) options() Options {
	return Options{
		Logger: slog.New(slog.DiscardHandler), client: w.client, runtime: removing{w},
		NewSides: func(_ *rest.Config, changed Changed) (Sides, error) {
			w.changed = changed
			return w.sides(), nil
		},
	}
}

// run runs an observer until the function that it returns is called.
func (w *world) run(o *Observer) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	synctest.Wait()
	return func() {
		w.t.Helper()
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

// drift are the kinds of drift that an observer has found, with their pods.
func drift(o *Observer) (found []string) {
	for _, d := range o.view.Load().report.Differences {
		if d.Drift {
			found = append(found, fmt.Sprintf("%s %s", d.Kind, d.Pod.Name))
		}
	}
	return found
}
