package cri

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLifeOfAPod(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	id := n.start(pod)
	p, err := n.Pod(t.Context(), pod.UID)
	if err != nil || len(p.IPs) != 1 || p.IPs[0] != "10.1.2.3" || p.Containers[0].State != runtime.Running || p.Containers[0].ID != id {
		t.Fatalf("after the start: got %+v, %v", p, err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "pods", "uid-1", "containers", "main", "0", "termination-log"), []byte("bye"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.fake.change(func() { n.fake.exit(bareID(id), 3) })
	n.list()
	if c := n.only(pod.UID); c.State != runtime.Exited || c.ExitCode != 3 || c.Reason != runtime.ReasonError || c.Message != "bye" {
		t.Errorf("after the end: got %+v", c)
	}
	if err := n.RemovePod(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if len(n.fake.sandboxes) > 0 || len(n.fake.containers) > 0 {
		t.Errorf("left: sandboxes %v, containers %v", n.fake.sandboxes, n.fake.containers)
	}
	if left, _ := os.ReadDir(filepath.Join(n.dir, "pods")); len(left) > 0 {
		t.Errorf("left on disk: %v", left)
	}
}

// A kill -9 of statusd: the next one finds the container, and an end that happened meanwhile.
func TestAdoption(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	id := n.start(pod)
	n.open()
	if c := n.only(pod.UID); c.State != runtime.Running || c.ID != id || c.Name != "main" || c.Image != "web:1" {
		t.Errorf("after a restart: got %+v", c)
	}
	n.fake.change(func() { n.fake.exit(bareID(id), 0) })
	n.open()
	if c := n.only(pod.UID); c.State != runtime.Exited || c.Reason != runtime.ReasonCompleted {
		t.Errorf("after an end during absence: got %+v", c)
	}
	p, _ := n.Pod(t.Context(), pod.UID)
	if p.Manifest.Name != "web" || len(p.IPs) != 1 {
		t.Errorf("after a restart: got pod %+v", p)
	}
}

// A pod whose sandbox could not be made, or has ended, is known and has no sandbox.
func TestPod_WithoutSandbox(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	wantNoPlace := func(when string, want bool) {
		t.Helper()
		if p, err := n.Pod(t.Context(), pod.UID); err != nil || p.NoPlace != want {
			t.Errorf("%s: got NoPlace %v, %v; want %v", when, p.NoPlace, err, want)
		}
	}
	n.fake.change(func() { n.fake.sandboxErr = errors.New("no network") })
	if err := n.StartPod(t.Context(), pod); err == nil {
		t.Fatal("a pod was started without a sandbox")
	}
	wantNoPlace("after a failure", true)
	n.fake.change(func() { n.fake.sandboxErr = nil })
	n.start(pod)
	wantNoPlace("after the start", false)
	n.open()
	wantNoPlace("after a restart", false)
	n.fake.change(func() {
		for _, s := range n.fake.sandboxes {
			s.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		}
	})
	n.list()
	wantNoPlace("after its end", true)
}

// The reason of a container that was lost in a reboot is the container runtime's, as with the kubelet.
func TestUnknownEnd_KeepsItsReason(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	id := n.start(pod)
	n.fake.change(func() {
		n.fake.exit(bareID(id), 255)
		n.fake.containers[bareID(id)].Reason = "Unknown"
	})
	n.list()
	if c := n.only(pod.UID); c.Reason != "Unknown" || c.ExitCode != 255 {
		t.Errorf("got %s, %d; want Unknown, 255", c.Reason, c.ExitCode)
	}
}

// A container runtime that starts at the same time as statusd refuses requests for a while.
func TestNew_RuntimeThatStarts_IsWaitedFor(t *testing.T) {
	n := &node{t: t, fake: newFake(t), dir: t.TempDir()}
	n.fake.change(func() { n.fake.refusals = 2 })
	n.open()
	n.start(testPod("uid-1"))
}

// A kill -9 of statusd while it makes a sandbox: the next one finds the sandbox, its address, and writes the hosts file, of which the container runtime has
// made a directory if a container was made without it.
func TestAdoption_OfASandboxThatWasNotHeardOf(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	if err := n.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	n.fake.change(func() { // another one, with another address
		clear(n.fake.sandboxes)
		n.fake.ip = "10.1.2.4"
		n.fake.sandboxes["unheard"] = &runtimeapi.PodSandbox{Id: "unheard", Metadata: &runtimeapi.PodSandboxMetadata{Uid: "uid-1", Attempt: 1}, Labels: map[string]string{labelPodUID: "uid-1"}}
	})
	hosts := filepath.Join(n.dir, "pods", "uid-1", "etc-hosts")
	if err := os.MkdirAll(hosts, 0o755); err != nil {
		t.Fatal(err)
	}
	n.open()
	n.start(pod)
	if p, err := n.Pod(t.Context(), pod.UID); err != nil || len(p.IPs) != 1 || p.IPs[0] != "10.1.2.4" {
		t.Errorf("got %+v, %v; want the address of the new sandbox", p, err)
	}
	if text, err := os.ReadFile(hosts); err != nil || !strings.Contains(string(text), "10.1.2.4") {
		t.Errorf("hosts file: %q, %v", text, err)
	}
}

// A container that a crash has left created would never run: it is removed, and the attempt can be made.
func TestInterruptedStart(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	if err := n.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	n.fake.change(func() {
		n.fake.containers["half"] = &runtimeapi.ContainerStatus{Id: "half", Labels: map[string]string{labelPodUID: "uid-1", labelContainerName: "main"}}
	})
	n.open()
	if p, _ := n.Pod(t.Context(), pod.UID); len(p.Containers) > 0 || n.fake.containers["half"] != nil {
		t.Errorf("got %+v, and %d containers; want none", p.Containers, len(n.fake.containers))
	}
	n.start(pod)
}

// While the container runtime does not answer, what was seen stays, and the node says why it takes no pods.
func TestRuntimeThatDoesNotAnswer(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	n.start(pod)
	n.fake.change(func() { n.fake.down = status.Error(codes.Unavailable, "restarting") })
	if err := n.relist(t.Context()); err == nil {
		t.Fatal("a list of a runtime that is down succeeds")
	}
	n.look(t.Context())
	if err := n.NotReady(); err != nil {
		t.Errorf("a container runtime that is silent for a moment: got %v, want a node that is ready", err)
	}
	n.mu.Lock()
	n.answered = n.answered.Add(-patience)
	n.mu.Unlock()
	n.look(t.Context())
	if c := n.only(pod.UID); c.State != runtime.Running {
		t.Errorf("got %+v, want it as it was last seen", c)
	}
	if err := n.NotReady(); err == nil || !strings.Contains(err.Error(), "container runtime is down") {
		t.Errorf("got %v, want a node that is not ready", err)
	}
	n.fake.change(func() {
		n.fake.down = nil
		n.fake.network = &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Reason: "NetworkPluginNotReady", Message: "cni plugin not initialized"}
	})
	n.look(t.Context())
	if err := n.NotReady(); err == nil || err.Error() != "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized" {
		t.Errorf("got %v, want the reason of the runtime", err)
	}
}

// A container of which the container runtime lost track, as after a kill -9 of both, is ended: it would count as running forever.
func TestContainerInAnUnknownState_IsEnded(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	id := n.start(pod)
	changes := n.Watch(t.Context())
	n.fake.change(func() { n.fake.containers[bareID(id)].State = runtimeapi.ContainerState_CONTAINER_UNKNOWN })
	n.list()
	for n.only(pod.UID).State != runtime.Exited {
		<-changes
	}
	if c := n.only(pod.UID); c.ExitCode != 137 {
		t.Errorf("got %+v, want it killed", c)
	}
}

// A runtime that has lost its state: the container has ended in an unknown way, and the next one gets a new sandbox.
func TestRuntimeThatForgets(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	id := n.start(pod)
	n.fake.change(func() { clear(n.fake.containers); clear(n.fake.sandboxes) })
	n.list()
	if c := n.only(pod.UID); c.State != runtime.Exited || c.Reason != runtime.ReasonUnknown || c.ExitCode != runtime.ExitCodeUnknown || c.ID != id {
		t.Errorf("got %+v, want an unknown end", c)
	}
	if _, err := n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1); err != nil {
		t.Fatal(err)
	}
	p, _ := n.Pod(t.Context(), pod.UID)
	if len(p.Containers) != 2 || p.Containers[0].EarlierPlace || !p.Containers[1].EarlierPlace {
		t.Errorf("got %+v, want the first in an earlier place", p.Containers)
	}
}

// What another agent has in the same container runtime is not touched.
func TestPodsOfOthersAreLeftAlone(t *testing.T) {
	n := newNode(t)
	n.fake.change(func() {
		n.fake.sandboxes["theirs"] = &runtimeapi.PodSandbox{Id: "theirs", Metadata: &runtimeapi.PodSandboxMetadata{Uid: "other"}, Labels: map[string]string{labelPodUID: "other"}}
		n.fake.containers["theirs"] = &runtimeapi.ContainerStatus{Id: "theirs", Labels: map[string]string{labelPodUID: "other"}}
	})
	pod := testPod("uid-1")
	n.start(pod)
	n.list()
	if pods, _ := n.Pods(t.Context()); len(pods) != 1 {
		t.Errorf("got %d pods, want our own", len(pods))
	}
	n.fake.change(func() {
		for id, c := range n.fake.containers {
			if c.Labels[labelPodUID] == "uid-1" {
				n.fake.exit(id, 0)
			}
		}
	})
	n.list()
	if err := n.RemovePod(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if n.fake.sandboxes["theirs"] == nil || n.fake.containers["theirs"] == nil || len(n.fake.sandboxes) != 1 {
		t.Errorf("left: %v, want the other's alone", n.fake.sandboxes)
	}
}

func TestStop(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	id := n.start(pod)
	changes := n.Watch(t.Context())
	if err := n.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	for n.only(pod.UID).State != runtime.Exited {
		<-changes
	}
	if c := n.only(pod.UID); c.ExitCode != 137 || c.Signal != 9 {
		t.Errorf("got %+v, want it killed", c)
	}
}

func TestStartThatFails(t *testing.T) {
	n := newNode(t)
	n.fake.startErr = errors.New("exec: not found")
	pod := testPod("uid-1")
	if err := n.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	id, err := n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	failed, ok := errors.AsType[*runtime.StartError](err)
	if !ok || failed.Reason != runtime.WaitingRunError || id == "" {
		t.Fatalf("got %q, %v; want a start that failed", id, err)
	}
	if c := n.only(pod.UID); c.State != runtime.Exited || c.Reason != runtime.ReasonStartError || c.ExitCode != 128 || !c.StartedAt.IsZero() {
		t.Errorf("got %+v", c)
	}
}

// A request to start a container that was cut off may have started it: another attempt would be a second copy.
func TestStartWithoutAnAnswer(t *testing.T) {
	for _, c := range []struct {
		story string
		runs  bool // in truth
		want  runtime.State
	}{{"it runs", true, runtime.Running}, {"it does not run", false, runtime.Exited}} {
		t.Run(c.story, func(t *testing.T) {
			n := newNode(t)
			pod := testPod("uid-1")
			if err := n.StartPod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			n.fake.change(func() {
				n.fake.starting = func(s *runtimeapi.ContainerStatus) error {
					if c.runs {
						s.State, s.StartedAt = runtimeapi.ContainerState_CONTAINER_RUNNING, 1
					}
					n.fake.down = status.Error(codes.Unavailable, "killed")
					return n.fake.down
				}
			})
			if _, err := n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0); err != nil {
				t.Fatalf("got %v, want no failure before the container runtime answers", err)
			}
			if s := n.only(pod.UID).State; s != runtime.Created {
				t.Errorf("before the container runtime answers: got %s", s)
			}
			if _, err := n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 1); !errors.Is(err, runtime.ErrContainerRunning) {
				t.Errorf("another attempt: got %v", err)
			}
			n.fake.change(func() { n.fake.down, n.fake.starting = nil, nil })
			n.list()
			n.list()
			if s := n.only(pod.UID).State; s != c.want {
				t.Errorf("after the next list: got %s, want %s", s, c.want)
			}
			running := false
			n.fake.change(func() {
				for _, s := range n.fake.containers {
					running = running || s.State == runtimeapi.ContainerState_CONTAINER_RUNNING
				}
			})
			if running != c.runs {
				t.Errorf("a container that runs: %v, want %v", running, c.runs)
			}
		})
	}
}

// A start that was given up and carried out all the same is undone.
func TestStartAfterItWasGivenUp(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	if err := n.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	n.fake.starting = func(*runtimeapi.ContainerStatus) error { return status.Error(codes.DeadlineExceeded, "hung") }
	id, err := n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	if err == nil {
		t.Fatal("the start succeeds")
	}
	n.fake.change(func() { n.fake.containers[bareID(id)].State = runtimeapi.ContainerState_CONTAINER_RUNNING })
	n.list()
	if s := n.fake.containers[bareID(id)].State; s != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("got %s, want it stopped", s)
	}
}

// A list that was begun before a sandbox was made does not take it away.
func TestSandboxMadeDuringAList(t *testing.T) {
	n := newNode(t)
	n.mu.Lock()
	known := n.generation
	n.mu.Unlock()
	pod := testPod("uid-1")
	n.start(pod)
	n.takeSandboxes(t.Context(), nil, known)
	if p, _ := n.place(pod.UID); !p.sandbox.ready {
		t.Error("a list that is older than the sandbox took it away")
	}
	n.takeSandboxes(t.Context(), nil, n.generation)
	if p, _ := n.place(pod.UID); p.sandbox.ready {
		t.Error("a sandbox that is no longer listed counts as ready")
	}
}

func TestImages(t *testing.T) {
	for _, c := range []struct {
		story, image string
		policy       v1.PullPolicy
		pullErr      error
		want         string // the reason
	}{
		{"present", "web:1", v1.PullIfNotPresent, nil, ""},
		{"pulled", "new:1", v1.PullIfNotPresent, nil, ""},
		{"never", "new:1", v1.PullNever, nil, runtime.WaitingImageNeverPull},
		{"fails", "new:1", v1.PullIfNotPresent, status.Error(codes.NotFound, "no such image"), runtime.WaitingImagePull},
		{"fails although it is there", "web:1", v1.PullAlways, status.Error(codes.NotFound, "no such image"), runtime.WaitingImagePull},
		{"no registry", "new:1", v1.PullIfNotPresent, errors.New("RegistryUnavailable"), "RegistryUnavailable"},
		{"not a name", "INVALID:1:2", v1.PullIfNotPresent, nil, runtime.WaitingInvalidImageName},
	} {
		t.Run(c.story, func(t *testing.T) {
			n := newNode(t)
			n.fake.pullErr = c.pullErr
			pod := testPod("uid-1")
			pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = c.image, c.policy
			if err := n.StartPod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			changes := n.Watch(t.Context())
			_, err := n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
			if errors.Is(err, runtime.ErrPulling) {
				<-changes
				_, err = n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
			}
			got := ""
			if failed, ok := errors.AsType[*runtime.StartError](err); ok {
				got = failed.Reason
			}
			if got != c.want {
				t.Errorf("got %v, want reason %q", err, c.want)
			}
		})
	}
}
