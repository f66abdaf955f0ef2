package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"syscall"
	"time"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/cgroup"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// outputTimeout is how long an Exec waits for output of processes that a command has
// left in the background.
const outputTimeout = time.Second

// Exec implements [runtime.Runtime]: the command gets what the container has got, that
// is environment, working directory and user.
func (r *Runtime) Exec(ctx context.Context, id string, command []string) (runtime.ExecResult, error) {
	r.mu.Lock()
	c, err := r.find(id)
	r.mu.Unlock()
	if err != nil {
		return runtime.ExecResult{}, err
	}
	if r.stateOf(c) != runtime.Running {
		return runtime.ExecResult{}, fmt.Errorf("process: exec in %s: %w", id, runtime.ErrNotRunning)
	}
	if len(command) == 0 {
		return runtime.ExecResult{}, fmt.Errorf("process: exec in %s: no command", id)
	}
	result, err := c.exec(ctx, command)
	if err != nil {
		return result, fmt.Errorf("process: exec %s in %s: %w", command[0], id, err)
	}
	return result, nil
}

func (c *container) exec(ctx context.Context, command []string) (runtime.ExecResult, error) {
	path, err := shim.LookPath(command[0], c.spec.Dir, c.spec.Env)
	if err != nil {
		return runtime.ExecResult{}, err
	}
	// The command shall not outlive us, and the kernel ties it to this very thread.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	output := &head{}
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Env, cmd.Dir = command, c.spec.Env, c.spec.Dir
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = outputTimeout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: shim.Credential(c.spec.User)}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if unified := cgroup.Unified(c.spec.Cgroup); unified != "" {
		dir, err := os.Open(unified)
		if err != nil {
			return runtime.ExecResult{}, err
		}
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	err = cmd.Start()
	if err == nil {
		// A thread of statusd must not be in a group that is killed, so that the command
		// is moved when it runs. One that has ended already needs no group.
		if moveErr := cgroup.Add(c.spec.Cgroup, cmd.Process.Pid); moveErr != nil && !errors.Is(moveErr, syscall.ESRCH) {
			err = errors.Join(fmt.Errorf("join control group: %w", moveErr), cmd.Cancel(), cmd.Wait())
			return runtime.ExecResult{ExitCode: -1}, err
		}
		err = cmd.Wait()
	}
	result := runtime.ExecResult{ExitCode: exitCode(cmd), Output: output.bytes}
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case exited || errors.Is(err, exec.ErrWaitDelay):
		return result, nil
	default:
		return result, err
	}
}

// exitCode is 128 plus the signal for a command that a signal ended, as in a shell.
func exitCode(cmd *exec.Cmd) int {
	if cmd.ProcessState == nil {
		return -1
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// head keeps the beginning of what is written to it. One goroutine at a time writes,
// since both streams of a command share one pipe when they share a writer.
type head struct{ bytes []byte }

func (h *head) Write(p []byte) (int, error) {
	room := runtime.MaxExecOutputBytes - len(h.bytes)
	h.bytes = append(h.bytes, p[:min(room, len(p))]...)
	return len(p), nil
}
