package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
)

// execArgument makes the test binary an agent that executes a command and waits for it.
const execArgument = "process-test-exec"

func execMain(dir, id, script string) int {
	rt, err := New(Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx := context.Background()
	go rt.Run(ctx)
	_, err = rt.ExecStream(ctx, id, sh(script), runtime.Streams{Stdin: os.Stdin, Stdout: os.Stdout, TTY: true})
	fmt.Println(err)
	return 1
}

// startAgent starts an agent that executes a script in a container. The script is a format; its argument is the path of the pipe that the test hears.
func (h *host) startAgent(t *testing.T, id, script string) *exec.Cmd {
	t.Helper()
	agent := exec.Command(os.Args[0], execArgument, h.dir, id, fmt.Sprintf(script, h.pipe))
	input, err := agent.StdinPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close() }) // an agent that is gone has closed it
	return agent
}

func TestACommandEndsWithAnAgentThatIsKilled(t *testing.T) {
	h, id := sleeping(t)
	h.close()
	agent := h.startAgent(t, id, hiding)
	first, second := h.hearPID(t), h.hearPID(t)
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := agent.Wait(); err == nil {
		t.Error("the agent ended by itself")
	}
	awaitEnd(t, first)
	awaitEnd(t, second)
	h.open(t)
	if c := h.only(t, "pod"); c.State != runtime.Running {
		t.Errorf("got %+v, want the container to run on", c)
	}
}

// The terminal of a killed agent may end the command before its shim sees the end of the connection. The agent is stopped first, so
// that it reads nothing, and the command is ended before it is killed.
func TestACommandEndsWithAnAgentThatNeverLearnedOfIt(t *testing.T) {
	h, id := sleeping(t)
	h.close()
	agent := h.startAgent(t, id, "setsid env -i sleep 100000 & echo $! > %[1]s; echo $$ > %[1]s; wait")
	hidden, main := h.hearPID(t), h.hearPID(t)
	err := agent.Process.Signal(unix.SIGSTOP)
	if err == nil {
		_, err = unix.Wait4(agent.Process.Pid, nil, unix.WUNTRACED, nil) // all of its threads have stopped
	}
	if err != nil {
		t.Fatal(err)
	}
	kill(t, main, unix.SIGKILL)
	awaitEnd(t, main)
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // killed, as asked
	awaitEnd(t, hidden)
}

// The shim of a command is killed, as for memory: the command goes with it.
func TestACommandEndsWithItsShim(t *testing.T) {
	h, id := sleeping(t)
	ended := make(chan int, 1)
	go func() {
		code, err := h.ExecStream(t.Context(), id, sh(fmt.Sprintf("echo $PPID > %[1]s; echo $$ > %[1]s; exec sleep 100000", h.pipe)), runtime.Streams{Stdout: io.Discard})
		if err != nil {
			t.Error(err)
		}
		ended <- code
	}()
	shim, command := h.hearPID(t), h.hearPID(t)
	kill(t, shim, unix.SIGKILL)
	if code := <-ended; code != 137 {
		t.Errorf("got %d, want 137", code)
	}
	awaitEnd(t, command)
}

func TestAProbeThatHidesEndsWithItsContainer(t *testing.T) {
	h, id := sleeping(t)
	type outcome struct {
		runtime.ExecResult
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		result, err := h.Exec(t.Context(), id, []string{"env", "-i", "/bin/sh", "-c", fmt.Sprintf("echo $$ > %s; exec sleep 100000", h.pipe)})
		ended <- outcome{result, err}
	}()
	command := h.hearPID(t)
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.err != nil || got.ExitCode != 137 {
		t.Errorf("got %+v, want 137", got)
	}
	expectEnded(t, "the command", command)
}

// Commands that are started while their container is stopped end with it, or do not start.
func TestCommandsDuringAStopLeaveNothing(t *testing.T) {
	h, id := sleeping(t)
	var commands sync.WaitGroup
	for i := range 20 {
		commands.Go(func() {
			streams := runtime.Streams{Stdout: io.Discard, TTY: i%2 == 0}
			code, err := h.ExecStream(t.Context(), id, sh("(setsid sleep 100000 &); exec sleep 100000"), streams)
			if err == nil && code != exitCodeKilled {
				t.Errorf("got %d, want a command that is killed", code)
			}
		})
		if i == 10 {
			if err := h.StopContainer(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	commands.Wait()
	h.awaitExit(t, "pod")
	expectNothingOf(t, id)
}

// expectNothingOf is for a container that has ended.
func expectNothingOf(t *testing.T, id string) {
	t.Helper()
	members := proc.Members{Variable: "STATUSD_CONTAINER_ID=" + id}
	left, err := members.PIDs()
	if err != nil || len(left) > 0 {
		for _, pid := range left {
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			t.Logf("%d: %q", pid, command)
		}
		t.Errorf("processes %d were left behind: %v", left, errors.Join(err, members.Kill(sweepTimeout)))
	}
}

// A command that was let in before its container ended may begin after the container's processes were killed.
func TestCommandsThatBeginAfterTheirContainerLeaveNothing(t *testing.T) {
	h, id := sleeping(t)
	c, err := h.mayExec(id, sh("true"))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	h.awaitExit(t, "pod")
	hiding := sh("(setsid sleep 100000 &); exec sleep 100000")
	var commands sync.WaitGroup
	for range 20 {
		commands.Go(func() {
			if code, err := h.execStream(t.Context(), c, hiding, runtime.Streams{Stdout: io.Discard}); err == nil && code != exitCodeKilled {
				t.Errorf("got %d, want a command that is killed", code)
			}
		})
		commands.Go(func() {
			if result, err := h.execProbe(t.Context(), c, hiding); err == nil && result.ExitCode != exitCodeKilled && result.ExitCode != -1 {
				t.Errorf("got %d, want a command that is killed or not started", result.ExitCode)
			}
		})
	}
	commands.Wait()
	expectNothingOf(t, id)
}

// What is attached or follows when the container is killed together with its shim ends.
func TestClientsEndWithAShimThatIsKilled(t *testing.T) {
	h, id := sleeping(t)
	logs, err := h.Logs(t.Context(), id, runtime.LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	out := &noticed{first: make(chan struct{})}
	attached := make(chan error, 1)
	go func() { attached <- h.Attach(t.Context(), id, runtime.Streams{Stdout: out}) }()
	kill(t, h.shimOf(t, "pod", id), unix.SIGKILL)
	if text, err := io.ReadAll(logs); len(text) > 0 || err != nil {
		t.Errorf("follow: got %q, %v; want the end", text, err)
	}
	<-attached // without an error if it was attached in time
}
