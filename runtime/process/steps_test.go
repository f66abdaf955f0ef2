package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// stepsArgument makes the test binary an agent that says each step before it takes it.
const stepsArgument = "process-test-steps"

func stepsMain(dir string) int {
	rt, err := New(Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go rt.Run(ctx)
	watch := rt.Watch(ctx)
	for {
		pod := scriptPod("pod", "while :; do sleep 0.01; done")
		var id string
		for _, step := range []func() error{
			func() error { return rt.StartPod(ctx, pod) },
			func() (err error) {
				id, err = rt.StartContainer(ctx, pod, &pod.Spec.Containers[0], 0)
				return err
			},
			func() error { return rt.StopContainer(ctx, id, time.Hour) },
			func() error { return awaitAll(ctx, rt, watch) },
			func() error { return rt.RemovePod(ctx, pod.UID) },
		} {
			fmt.Println("next")
			if err := step(); err != nil {
				fmt.Println(err)
				return 1
			}
		}
	}
}

// awaitAll waits until no container of the pod runs.
func awaitAll(ctx context.Context, rt *Runtime, watch <-chan types.UID) error {
	for {
		pod, err := rt.Pod(ctx, "pod")
		if err != nil {
			return err
		}
		if len(pod.Containers) == 1 && pod.Containers[0].State == runtime.Exited {
			return nil
		}
		<-watch
	}
}

// anyCreated reports whether a container has neither started nor ended.
func (h *host) anyCreated(t *testing.T) bool {
	t.Helper()
	pods, err := h.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if c.State == runtime.Created {
				return true
			}
		}
	}
	return false
}

// An agent that is killed anywhere leaves what the next one can take over, end and remove,
// and nothing else.
func TestAnAgentKilledAtAnyStepLeavesNothingBehind(t *testing.T) {
	h := newHost(t)
	for step := range 15 {
		agent := exec.Command(os.Args[0], stepsArgument, h.dir)
		stdout, err := agent.StdoutPipe()
		if err == nil {
			err = agent.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(stdout)
		for range step + 1 {
			if line, err := lines.ReadString('\n'); line != "next\n" {
				t.Fatalf("the agent says %q, %v", line, err)
			}
		}
		if err := agent.Process.Kill(); err != nil { // it is taking the step, or the one after it
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, lines)
		_ = agent.Wait()
		h.open(t)
		for timeout := time.After(10 * time.Minute); h.anyCreated(t); {
			select {
			case <-h.watch:
			case <-timeout:
				t.Fatalf("step %d: a container is neither running nor exited", step)
			}
		}
		h.leaveNothing(t) // closes it
		h.open(t)
		if h.cleanOnce(t.Context()) {
			t.Errorf("step %d: problems: %+v", step, h.Problems())
		}
		if got := files(t, h.dir); len(got) != 4 {
			t.Errorf("step %d: left %q", step, got)
		}
		h.close()
	}
	// Every process of a container has this in its environment.
	marked, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range marked {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), shim.MarkerVariable+"=") && strings.Contains(string(data), h.dir) {
			t.Errorf("%s is left", path)
		}
	}
	h.open(t)
}

// A shim that is killed while it waits for room to record an exit takes nothing back.
func TestAnExitThatWasSeenStays(t *testing.T) {
	if !mayMount(t) {
		return
	}
	h, disk := newHostOnSmallDisk(t)
	id := h.start(t, scriptPod("pod", h.trapping()))
	h.hear(t)
	shim := h.shimOf(t, "pod", id)
	free := fill(t, disk)
	if err := h.StopContainer(t.Context(), id, time.Hour); err != nil {
		t.Fatal(err)
	}
	seen := h.awaitExit(t, "pod")
	kill(t, shim, syscall.SIGKILL)
	awaitEnd(t, shim)
	h.close()
	if got := h.pods["pod"].containers[0].view; got != seen || got.ExitCode != 4 {
		t.Errorf("got %+v, want %+v", got, seen)
	}
	free()
	h.open(t)
	if c := h.awaitExit(t, "pod"); c.Reason != runtime.ReasonUnknown {
		t.Errorf("under the next statusd: got %+v, want ContainerStatusUnknown", c)
	}
}

// A line of 10 MB, and one without an end, cost a shim no memory to speak of.
func TestVeryLongLinesAreLogged(t *testing.T) {
	h := newHost(t)
	h.options.LogMaxBytes, h.options.LogMaxFiles = 30<<20, 2
	h.open(t)
	if err := syscall.Mkfifo(h.pipe+".go", 0o600); err != nil {
		t.Fatal(err)
	}
	id := h.start(t, scriptPod("pod", fmt.Sprintf(
		`head -c 10000000 /dev/zero | tr '\0' x; echo; head -c 10000000 /dev/zero | tr '\0' y; echo > %[1]s; read -r line < %[1]s.go`, h.pipe)))
	h.hear(t)
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	h.awaitExit(t, "pod")
	logs, err := h.Logs(t.Context(), id, runtime.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	text, err := io.ReadAll(logs)
	if x, y := strings.Count(string(text), "x"), strings.Count(string(text), "y"); err != nil || x != 10000000 || y != 10000000 {
		t.Errorf("got %d x and %d y, %v; want 10000000 of each", x, y, err)
	}
}

// A shim that is killed anywhere between its start and the end of its container leaves
// nothing that runs, and a container that has ended or never was.
func TestAShimKilledAtAnyTimeLeavesNothingBehind(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", "setsid sleep 100000 & sleep 100000")
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for attempt := range 30 {
		c, err := h.prepare(t.Context(), h.pods["pod"], pod, &pod.Spec.Containers[0], attempt)
		if err != nil {
			t.Fatal(err)
		}
		killed := make(chan error)
		go func() { // as soon as it is there, or a little later
			var shim proc.ID
			for record.Read(c.dir.Shim(), &shim) != nil {
				goruntime.Gosched()
			}
			for range attempt * attempt * 10 {
				_ = record.Read(c.dir.Shim(), &shim)
			}
			killed <- shim.Signal(syscall.SIGKILL)
		}()
		err = h.launch(t.Context(), h.pods["pod"], c)
		if killErr := <-killed; killErr != nil {
			t.Fatal(killErr)
		}
		if err == nil || h.listedID(c) != "" {
			h.awaitAllExited(t, "pod")
			if state, reason := c.view.State, c.view.Reason; state != runtime.Exited || reason != runtime.ReasonUnknown {
				t.Errorf("attempt %d: got %s, %s, %v; want ContainerStatusUnknown", attempt, state, reason, err)
			}
		}
		if left, err := (proc.Members{Variable: c.marker()}).PIDs(); err != nil || len(left) > 0 {
			t.Errorf("attempt %d: %v still run, %v", attempt, left, err)
		}
		h.prune(h.pods["pod"], "main")
	}
}
