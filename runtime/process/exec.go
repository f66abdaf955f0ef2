package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// outputTimeout is how long an Exec waits for output of processes that a command has
// left in the background.
const outputTimeout = time.Second

// Exec implements [runtime.Runtime]: the command gets what the container has got, that
// is environment, working directory and user.
func (r *Runtime) Exec(ctx context.Context, id string, command []string) (runtime.ExecResult, error) {
	c, err := r.mayExec(id, command)
	if err != nil {
		return runtime.ExecResult{}, err
	}
	result, err := r.execProbe(ctx, c, command)
	if err != nil {
		return result, fmt.Errorf("process: exec %s in %s: %w", command[0], id, err)
	}
	return result, nil
}

func (r *Runtime) execProbe(ctx context.Context, c *container, command []string) (runtime.ExecResult, error) {
	r.mu.Lock()
	main := c.started.Main // set before a container is Running
	r.mu.Unlock()
	defer r.commandEnded(c)
	return c.exec(ctx, main, command)
}

func (c *container) exec(ctx context.Context, main proc.ID, command []string) (runtime.ExecResult, error) {
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.ended: // what the end of the container does not find has to end all the same
			cancel()
		case <-inside.Done():
		}
	}()
	var result runtime.ExecResult
	var err error
	shim.OnOwnThread(func() { result, err = c.execFromThread(inside, main, command) })
	cancel()
	<-watched
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		err = nil // as if the container had taken it along
	}
	return result, err
}

// execFromThread needs a thread of its own, which waits for the command: the kernel ties the
// command to it, so that it does not outlive us.
func (c *container) execFromThread(ctx context.Context, main proc.ID, command []string) (runtime.ExecResult, error) {
	attributes, release, err := shim.EnterContainer(c.spec, &main)
	if err != nil {
		return runtime.ExecResult{}, err
	}
	defer release()
	path, err := shim.LookPath(command[0], c.spec.Dir, c.spec.Env)
	if err != nil {
		return runtime.ExecResult{}, err
	}
	attributes.Setpgid, attributes.Pdeathsig = true, syscall.SIGKILL
	output := &head{}
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Env, cmd.Dir = command, c.spec.Env, c.spec.Dir
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = outputTimeout
	cmd.SysProcAttr = attributes
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
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
