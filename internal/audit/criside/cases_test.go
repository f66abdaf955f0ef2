package criside

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/internal/sidetest"
)

// control is a runtime that can be disturbed.
type control interface {
	Endpoint() string
	Start()
	Kill()
	Freeze()
	Thaw()
}

// watched is a side under test.
type watched struct {
	*sidetest.Watched[*Side, audit.Runtime]
}

// watchSide runs a side until the test ends. It looks as often as it may, so that each wait below is for a state.
func watchSide(t *testing.T, o Options) *watched {
	t.Helper()
	if o.Pace == 0 {
		o.Pace, o.Least = 20*time.Millisecond, 10*time.Millisecond
	}
	return &watched{sidetest.Watch(t, func(changed func(types.UID)) (*Side, error) {
		o.Changed = changed
		return New(o)
	})}
}

// looks waits until the runtime was listed n times more.
func (w *watched) looks(n int) {
	at := w.Side.Facts().RuntimeAnswer.At
	for n > 0 {
		w.Side.Refresh()
		if now := w.Side.Facts().RuntimeAnswer.At; !now.Equal(at) {
			at, n = now, n-1
		}
		time.Sleep(time.Millisecond)
	}
}

// machine makes sandboxes and containers through CRI, as a kubelet does.
type machine struct {
	t      *testing.T
	client runtimeapi.RuntimeServiceClient
}

func newMachine(t *testing.T, endpoint string) machine {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return machine{t, runtimeapi.NewRuntimeServiceClient(conn)}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (m machine) sandboxConfig(uid string) *runtimeapi.PodSandboxConfig {
	host := runtimeapi.NamespaceMode_NODE
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod", Namespace: "ns", Uid: uid, Attempt: 2},
		Labels:   map[string]string{labelPodName: "pod", labelPodNamespace: "ns", labelPodUID: uid},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: host},
		}},
	}
}

func (m machine) sandbox(uid string) string {
	m.t.Helper()
	request := &runtimeapi.RunPodSandboxRequest{Config: m.sandboxConfig(uid)}
	id := must[*runtimeapi.RunPodSandboxResponse](m.t)(m.client.RunPodSandbox(m.t.Context(), request)).PodSandboxId
	m.t.Cleanup(func() {
		ctx := context.Background() // that of the test has ended
		_, _ = m.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
		_, _ = m.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	})
	return id
}

// container makes a container, with the labels of a kubelet or without, and starts it.
func (m machine) container(uid, sandbox, name, script string, labeled bool) string {
	m.t.Helper()
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: 1}, Image: &runtimeapi.ImageSpec{Image: "docker.io/library/host:latest"},
		Command: []string{"/bin/sh", "-c"}, Args: []string{script}, Linux: &runtimeapi.LinuxContainerConfig{},
	}
	if labeled {
		config.Labels = map[string]string{labelPodName: "pod", labelPodNamespace: "ns", labelPodUID: uid, labelContainerName: name}
		config.Annotations = map[string]string{restartCount: "7"}
	}
	created := must[*runtimeapi.CreateContainerResponse](m.t)(m.client.CreateContainer(m.t.Context(),
		&runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: m.sandboxConfig(uid)}))
	must[*runtimeapi.StartContainerResponse](m.t)(m.client.StartContainer(m.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: created.ContainerId}))
	return created.ContainerId
}

func (m machine) stop(id string) {
	m.t.Helper()
	must[*runtimeapi.StopContainerResponse](m.t)(m.client.StopContainer(m.t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id}))
}

func (m machine) remove(id string) {
	m.t.Helper()
	must[*runtimeapi.RemoveContainerResponse](m.t)(m.client.RemoveContainer(m.t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: id}))
}

// runtimeCases is what must hold of the side whatever the runtime is.
func runtimeCases(t *testing.T, make func(t *testing.T) control) {
	const uid, forever = "0f8fad5b-d9cb-469f-a165-70867728950e", "while :; do sleep 1000; done"
	known := func(r audit.Runtime) bool { return r.RuntimeAnswer.Known() }

	for name, run := range map[string]func(t *testing.T, c control, m machine, w *watched){
		"what there is": func(t *testing.T, _ control, m machine, w *watched) {
			sandbox := m.sandbox(uid)
			container := m.container(uid, sandbox, "app", forever, true)
			facts := w.Await("a container that runs", func(r audit.Runtime) bool { return r.Containers[container].State == audit.ContainerRunning })
			if got := facts.Sandboxes[sandbox]; got.UID != uid || got.Namespace != "ns" || got.Name != "pod" || got.Attempt != 2 || !got.Ready || got.Created.IsZero() || got.At.IsZero() || got.ID != sandbox {
				t.Errorf("got sandbox %+v", got)
			}
			if got := facts.Containers[container]; got.UID != uid || got.Namespace != "ns" || got.PodName != "pod" || got.Name != "app" || got.Attempt != 7 ||
				got.SandboxID != sandbox || got.Created.IsZero() || got.Started.Before(got.Created) || !got.Finished.IsZero() || got.Image == "" || got.At.IsZero() {
				t.Errorf("got container %+v", got)
			}
		},
		"how it ended": func(t *testing.T, _ control, m machine, w *watched) {
			sandbox := m.sandbox(uid)
			failed := m.container(uid, sandbox, "failed", "exit 3", true)
			killed := m.container(uid, sandbox, "killed", forever, true)
			w.Await("a container that runs", func(r audit.Runtime) bool { return r.Containers[killed].State == audit.ContainerRunning })
			m.stop(killed)
			facts := w.Await("two that ended", func(r audit.Runtime) bool {
				return r.Containers[failed].State == audit.ContainerExited && r.Containers[killed].State == audit.ContainerExited
			})
			for id, code := range map[string]int32{failed: 3, killed: 137} {
				// containerd may note the end of a short process a little before its start.
				if got := facts.Containers[id]; got.ExitCode != code || got.Finished.IsZero() || got.Started.IsZero() || got.Reason == "" {
					t.Errorf("got %+v, want exit code %d", got, code)
				}
			}
			m.remove(failed)
			w.Await("one that is gone", func(r audit.Runtime) bool { _, ok := r.Containers[failed]; return !ok && len(r.Containers) == 1 })
		},
		"a container of another program": func(t *testing.T, _ control, m machine, w *watched) {
			container := m.container(uid, m.sandbox(uid), "by-hand", forever, false)
			facts := w.Await("it", func(r audit.Runtime) bool { return r.Containers[container].State == audit.ContainerRunning })
			if got := facts.Containers[container]; got.UID != uid || got.PodName != "pod" || got.Name != "by-hand" || got.Attempt != 1 {
				t.Errorf("got %+v, want it to be of the pod of its sandbox", got)
			}
		},
		"details are asked for once": func(t *testing.T, _ control, m machine, w *watched) {
			sandbox := m.sandbox(uid)
			container := m.container(uid, sandbox, "app", "exit 1", true)
			w.Await("its end", func(r audit.Runtime) bool { return r.Containers[container].State == audit.ContainerExited })
			w.looks(2) // the first may have begun before its end
			before := w.Side.Calls()
			w.looks(3)
			after := w.Side.Calls()
			if after["ContainerStatus"] != before["ContainerStatus"] || after["PodSandboxStatus"] != before["PodSandboxStatus"] || after["ListContainers"] < before["ListContainers"]+2 {
				t.Errorf("got calls %v after %v, want lists only", after, before)
			}
		},
		"killed and started again": func(t *testing.T, c control, m machine, w *watched) {
			container := m.container(uid, m.sandbox(uid), "app", forever, true)
			before := w.Await("it", func(r audit.Runtime) bool { return r.Containers[container].State == audit.ContainerRunning })
			c.Kill()
			silent := w.Await("silence", func(r audit.Runtime) bool { return !known(r) })
			if silent.Containers[container] != before.Containers[container] || silent.RuntimeAnswer.Silent.IsZero() || silent.RuntimeAnswer.At.IsZero() || silent.RuntimeAnswer.From == "" {
				t.Errorf("got %+v, want what it had last", silent)
			}
			c.Start()
			back := w.Await("an answer", known)
			if back.Containers[container] != before.Containers[container] || !back.RuntimeAnswer.Silent.IsZero() || !back.RuntimeAnswer.Since.After(silent.RuntimeAnswer.Silent) {
				t.Errorf("got %+v, want the container, and since when the runtime answers", back)
			}
		},
		"frozen": func(t *testing.T, c control, m machine, w *watched) {
			container := m.container(uid, m.sandbox(uid), "app", forever, true)
			w.Await("it", func(r audit.Runtime) bool { return r.Containers[container].State == audit.ContainerRunning })
			c.Freeze()
			if silent := w.Await("silence", func(r audit.Runtime) bool { return !known(r) }); len(silent.Containers) != 1 {
				t.Errorf("got %+v, want what it had last", silent)
			}
			c.Thaw()
			w.Await("an answer", known)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := make(t)
			w := watchSide(t, Options{Endpoint: c.Endpoint(), Timeout: time.Second})
			w.Await("the first answer", known)
			run(t, c, newMachine(t, c.Endpoint()), w)
		})
	}
}

// ids of containers, in order.
func ids(r audit.Runtime) []string { return slices.Sorted(maps.Keys(r.Containers)) }
