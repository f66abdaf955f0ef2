package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// agentArgument makes the test binary an agent that a test can kill.
const agentArgument = "process-test-agent"

// agentMain starts a pod for each script, says so, and waits to be killed.
func agentMain(dir string, scripts []string) int {
	rt, err := New(Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for i, script := range scripts {
		pod := scriptPod(types.UID(fmt.Sprint("pod-", i)), script)
		err := rt.StartPod(context.Background(), pod)
		if err == nil {
			_, err = rt.StartContainer(context.Background(), pod, &pod.Spec.Containers[0], 0)
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("started")
	if err := rt.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	return 1
}

// runUnderKilledAgent runs scripts under an agent that is then killed with SIGKILL.
func (h *host) runUnderKilledAgent(t *testing.T, scripts ...string) {
	t.Helper()
	agent := exec.Command(os.Args[0], append([]string{agentArgument, h.dir}, scripts...)...)
	stdout, err := agent.StdoutPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		t.Fatalf("start agent: %v", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if line != "started\n" {
		t.Errorf("the agent says %q, %v", line, err)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Errorf("kill agent: %v", err)
	}
	if err := agent.Wait(); err == nil {
		t.Error("the agent ended by itself")
	}
}

func TestAnotherProgramCanBeTheShim(t *testing.T) {
	h := newHost(t)
	h.options.ShimCommand = []string{"/usr/bin/env", os.Args[0], shimArgument}
	h.open(t)
	h.start(t, scriptPod("pod", "exit 8"))
	if c := h.awaitExit(t, "pod"); c.ExitCode != 8 {
		t.Errorf("got %+v, want exit code 8", c)
	}
}

func TestAShimThatCannotBeStartedIsAnError(t *testing.T) {
	h := newHost(t)
	for story, command := range map[string][]string{
		"no such program": {"/no/such/program"},
		"no shim":         {"/bin/true"},
	} {
		h.options.ShimCommand = command
		h.open(t)
		pod := scriptPod("pod", "exit 0")
		if err := h.StartPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		id, err := h.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
		if id == "" {
			if start, ok := errors.AsType[*runtime.StartError](err); !ok || start.Reason != runtime.WaitingCreateError {
				t.Errorf("%s: got %v, want CreateContainerError", story, err)
			}
		} else if c := h.awaitExit(t, "pod"); c.Reason != runtime.ReasonUnknown {
			t.Errorf("%s: got %+v, want ContainerStatusUnknown", story, c)
		}
		if err := h.RemovePod(t.Context(), "pod"); err != nil {
			t.Error(err)
		}
		h.close()
	}
}

func TestContainersOfAKilledAgentAreAdopted(t *testing.T) {
	h := newHost(t)
	stays := fmt.Sprintf(`echo $$ > %s; while :; do sleep 0.05; done`, h.pipe)
	exits := fmt.Sprintf(`until [ -e %s.go ]; do sleep 0.05; done; echo leaving > %s; exit 3`, h.pipe, h.pipe)
	h.runUnderKilledAgent(t, stays, exits)
	main := h.hearPID(t)
	if err := os.WriteFile(h.pipe+".go", nil, 0o600); err != nil { // while no agent runs
		t.Fatal(err)
	}
	if got := h.hear(t); got != "leaving" {
		t.Fatalf("heard %q, want leaving", got)
	}
	h.open(t)
	if c := h.awaitExit(t, "pod-1"); c.ExitCode != 3 || c.Reason != runtime.ReasonError {
		t.Errorf("the container that exited meanwhile: got %+v, want exit code 3", c)
	}
	if c := h.only(t, "pod-0"); c.State != runtime.Running || c.StartedAt.IsZero() {
		t.Errorf("the container that stayed: got %+v, want it running", c)
	}
	if again, err := proc.Identify(main.PID); err != nil || again != main {
		t.Errorf("the process of the container that stayed: got %v, %v; want %v", again, err, main)
	}
	if err := h.StopContainer(t.Context(), h.only(t, "pod-0").ID, 0); err != nil {
		t.Fatal(err)
	}
	h.awaitExit(t, "pod-0")
	expectEnded(t, "the container that stayed", main)
}

func TestAKilledShimTakesItsContainerAlong(t *testing.T) {
	h := newHost(t)
	h.open(t)
	// One descendant has left the session, the other one the environment.
	id := h.start(t, scriptPod("pod", fmt.Sprintf(
		`setsid sh -c 'echo $$ > %[1]s; sleep 100000' & env -i sh -c 'echo $$ > %[1]s; sleep 100000' & echo $$ > %[1]s; wait`, h.pipe)))
	processes := []proc.ID{h.hearPID(t), h.hearPID(t), h.hearPID(t)}
	kill(t, h.shimOf(t, "pod", id), syscall.SIGKILL)
	c := h.awaitExit(t, "pod")
	if c.ExitCode != 137 || c.Reason != runtime.ReasonUnknown || c.Message == "" || c.StartedAt.IsZero() || c.FinishedAt.IsZero() {
		t.Errorf("got %+v, want ContainerStatusUnknown 137", c)
	}
	for _, p := range processes {
		expectEnded(t, "a process of the container", p)
	}
	h.close()
	h.open(t)
	if again := h.only(t, "pod"); again.Reason != runtime.ReasonUnknown || !again.FinishedAt.Equal(c.FinishedAt) {
		t.Errorf("after a restart: got %+v, want what was said before: %+v", again, c)
	}
}

func TestAShimKilledDuringAbsenceIsNoticed(t *testing.T) {
	h := newHost(t)
	h.open(t)
	id := h.start(t, scriptPod("pod", fmt.Sprintf(`echo $$ > %s; while :; do sleep 0.05; done`, h.pipe)))
	main := h.hearPID(t)
	h.close()
	shim := h.shimOf(t, "pod", id)
	kill(t, shim, syscall.SIGKILL)
	// It is a child of this test, which would otherwise leave it unreaped.
	if _, err := syscall.Wait4(shim.PID, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	h.open(t)
	if c := h.only(t, "pod"); c.State != runtime.Exited || c.Reason != runtime.ReasonUnknown || c.ExitCode != 137 {
		t.Errorf("got %+v, want ContainerStatusUnknown 137", c)
	}
	expectEnded(t, "the container", main)
}

func TestAShimIgnoresSignals(t *testing.T) {
	h := newHost(t)
	h.open(t)
	id := h.start(t, scriptPod("pod", fmt.Sprintf(`trap 'echo termed > %[1]s; exit 4' TERM; echo ready > %[1]s; while :; do sleep 0.05; done`, h.pipe)))
	h.hear(t)
	shim := h.shimOf(t, "pod", id)
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2} {
		kill(t, shim, signal)
	}
	// The container has default handlers all the same: a stop ends it by its own trap.
	if err := h.StopContainer(t.Context(), id, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := h.hear(t); got != "termed" {
		t.Errorf("heard %q, want termed", got)
	}
	if c := h.awaitExit(t, "pod"); c.ExitCode != 4 {
		t.Errorf("got %+v, want exit code 4", c)
	}
}

// A record whose number now belongs to another process: that process must live.
func TestAReusedProcessNumberIsNeitherAdoptedNorKilled(t *testing.T) {
	h := newHost(t)
	h.open(t)
	id := h.start(t, scriptPod("pod", "exit 0"))
	h.awaitExit(t, "pod")
	h.close()

	stranger := exec.Command("sleep", "100000")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	reused, err := proc.Identify(stranger.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	reused.Start--
	dir := podDir(filepath.Join(h.dir, "pods", "pod")).container(id)
	err = errors.Join(os.Remove(dir.Exit()), record.Write(dir.Shim(), reused),
		record.Write(dir.Started(), record.Started{Main: reused, At: time.Now()}))
	if err != nil {
		t.Fatal(err)
	}

	h.open(t)
	if c := h.only(t, "pod"); c.State != runtime.Exited || c.Reason != runtime.ReasonUnknown {
		t.Errorf("got %+v, want ContainerStatusUnknown", c)
	}
	if err := stranger.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("the stranger was killed: %v", err)
	}
	if err := stranger.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the stranger ended with %v, want our SIGTERM", err)
	}
}

func TestRecordsOfAnEarlierBootAreOfTheDead(t *testing.T) {
	h := newHost(t)
	h.open(t)
	id := h.start(t, scriptPod("pod", "exit 0"))
	h.awaitExit(t, "pod")
	h.close()
	self, err := proc.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	self.Boot = "another"
	dir := podDir(filepath.Join(h.dir, "pods", "pod")).container(id)
	err = errors.Join(os.Remove(dir.Exit()), record.Write(dir.Shim(), self), record.Write(dir.Started(), record.Started{Main: self, At: time.Now()}))
	if err != nil {
		t.Fatal(err)
	}
	h.open(t)
	if c := h.only(t, "pod"); c.State != runtime.Exited || c.Reason != runtime.ReasonUnknown {
		t.Errorf("got %+v, want ContainerStatusUnknown", c)
	}
}

// An agent that dies between starting a shim and remembering it must not leave a
// container that is not listed.
func TestAShimThatIsNotToldToGoLeavesNothing(t *testing.T) {
	dir := podDir(t.TempDir()).container("0001")
	if err := os.MkdirAll(dir.Logs(), 0o700); err != nil {
		t.Fatal(err)
	}
	witness := filepath.Join(t.TempDir(), "ran")
	spec := record.Spec{ID: Scheme + "0001", Name: "main", Command: []string{"/bin/touch", witness}, Dir: "/"}
	if err := record.Write(dir.Spec(), spec); err != nil {
		t.Fatal(err)
	}
	ours, theirs, err := control.Pair()
	if err != nil {
		t.Fatal(err)
	}
	pid, pidfd, err := (&Runtime{}).spawn(newContainer("pod", dir, spec), theirs)
	if err := errors.Join(err, syscall.Close(ours)); err != nil { // the agent dies
		t.Fatal(err)
	}
	defer syscall.Close(pidfd)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.ExitStatus() != 0 {
		t.Errorf("the shim ended with %d, %v; want 0", status.ExitStatus(), err)
	}
	for _, path := range []string{string(dir.Dir), witness} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v, want that it does not exist", path, err)
		}
	}
}

// An agent that dies right after it told a shim to go is followed by one that finds a shim
// without a socket.
func TestAShimThatIsStillStartingIsReached(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", "while :; do sleep 0.01; done")
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	dir := h.podDir(pod.UID).container("0001")
	h.close()
	if err := os.MkdirAll(dir.Logs(), 0o700); err != nil {
		t.Fatal(err)
	}
	spec := record.Spec{ID: Scheme + "0001", Name: "main", Command: []string{"/bin/sleep", "100000"}, Dir: "/", StopSignal: int(syscall.SIGTERM)}
	if err := record.Write(dir.Spec(), spec); err != nil {
		t.Fatal(err)
	}
	ours, theirs, err := control.Pair()
	if err != nil {
		t.Fatal(err)
	}
	pid, pidfd, err := (&Runtime{}).spawn(newContainer("pod", dir, spec), theirs)
	if err == nil {
		err = errors.Join(syscall.Close(pidfd), syscall.Kill(pid, syscall.SIGSTOP))
	}
	if err == nil {
		_, err = syscall.Wait4(pid, nil, syscall.WUNTRACED, nil) // all of its threads have stopped
	}
	if err != nil {
		t.Fatal(err)
	}
	id, err := proc.Identify(pid)
	if err := errors.Join(err, record.Write(dir.Shim(), id), control.Send(ours, control.Request{Go: spec.ID}), syscall.Close(ours)); err != nil {
		t.Fatal(err)
	}
	h.open(t)
	if c := h.only(t, pod.UID); c.State != runtime.Created {
		t.Errorf("a shim that has done nothing yet: got %+v, want it created", c)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	h.awaitStarted(t, pod.UID)
}

// A daemon that has left parent, session and environment can only be found because the
// shim inherits it.
func TestADaemonThatHidesEndsWithItsContainer(t *testing.T) {
	h := newHost(t)
	h.open(t)
	h.start(t, scriptPod("pod", fmt.Sprintf(
		`(env -i setsid sh -c 'echo $$ > %[1]s; exec sleep 100000' &); until [ -e %[1]s.go ]; do sleep 0.05; done; exit 2`, h.pipe)))
	daemon := h.hearPID(t)
	if err := os.WriteFile(h.pipe+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := h.awaitExit(t, "pod"); c.ExitCode != 2 {
		t.Errorf("got %+v, want exit code 2", c)
	}
	expectEnded(t, "the daemon", daemon)
}
