package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/runtime"
)

// mayExec is a container that runs.
func (r *Runtime) mayExec(id string) (*container, error) {
	c, state, err := r.lookup(id)
	if err == nil && state != runtime.Running {
		err = fmt.Errorf("cri: container %s: %w", id, runtime.ErrNotRunning)
	}
	return c, err
}

// answerTime is how long the container runtime may take to say that it has killed a command whose time was over, and pingTime how long it may take to
// say anything. Both together are less than callers wait.
const (
	answerTime = 1400 * time.Millisecond
	pingTime   = 400 * time.Millisecond
)

// errSilent is the error of a command about which the container runtime says nothing. A probe must not fail for that: the container would be
// restarted because of the container runtime.
var errSilent = errors.New("the container runtime does not answer")

// Exec implements [runtime.Runtime].
func (r *Runtime) Exec(ctx context.Context, id string, command []string) (runtime.ExecResult, error) {
	c, err := r.mayExec(id)
	if err != nil {
		return runtime.ExecResult{}, err
	}
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	request := &runtimeapi.ExecSyncRequest{ContainerId: c.id, Cmd: command}
	if end, bounded := ctx.Deadline(); bounded {
		request.Timeout = int64(math.Ceil(time.Until(end).Seconds()))
	}
	// Not by a deadline of the request, to which the connection answers even if nothing behind it does.
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			backoff.Sleep(asking, answerTime)
		}
		cancel()
	})()
	response, err := r.cri.ExecSync(asking, request)
	switch {
	case asking.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !r.answers():
		return runtime.ExecResult{}, fmt.Errorf("cri: exec in %s: %w", id, errSilent)
	case ctx.Err() != nil:
		return runtime.ExecResult{}, ctx.Err()
	case status.Code(err) == codes.DeadlineExceeded: // a little before our own clock says so
		return runtime.ExecResult{}, context.DeadlineExceeded
	}
	if err != nil {
		return runtime.ExecResult{}, r.notRunning(c, fmt.Errorf("cri: exec in %s: %w", id, err))
	}
	output := append(response.Stdout, response.Stderr...)
	return runtime.ExecResult{ExitCode: int(response.ExitCode), Output: output[:min(len(output), runtime.MaxExecOutputBytes)]}, nil
}

// answers reports whether the container runtime answers at all.
func (r *Runtime) answers() bool {
	ctx, cancel := context.WithTimeout(r.life, pingTime)
	defer cancel()
	_, err := r.cri.Version(ctx, &runtimeapi.VersionRequest{})
	return err == nil
}

// notRunning adds to an error that the container has ended, if it has.
func (r *Runtime) notRunning(c *container, err error) error {
	ctx, cancel := r.ask(r.life)
	defer cancel()
	if r.refresh(ctx, c) != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.view.State != runtime.Running {
		return errors.Join(err, runtime.ErrNotRunning)
	}
	return err
}

// ExecStream implements [runtime.Streamer], through the streaming server of the container runtime. When ctx ends the connection is closed; whether the
// command ends with it the container runtime decides, and at the latest it ends with the container.
func (r *Runtime) ExecStream(ctx context.Context, id string, command []string, streams runtime.Streams) (int, error) {
	c, err := r.mayExec(id)
	if err != nil {
		return 0, err
	}
	streams = atLeastOne(streams)
	bounded, cancel := r.ask(ctx)
	defer cancel()
	response, err := r.cri.Exec(bounded, &runtimeapi.ExecRequest{
		ContainerId: c.id, Cmd: command, Tty: streams.TTY, Stdin: streams.Stdin != nil, Stdout: streams.Stdout != nil, Stderr: streams.Stderr != nil && !streams.TTY,
	})
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, r.notRunning(c, fmt.Errorf("cri: exec in %s: %w", id, err))
	}
	err = stream(ctx, response.Url, streams)
	if ended, ok := errors.AsType[exec.CodeExitError](err); ok {
		return ended.Code, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cri: exec in %s: %w", id, err)
	}
	return 0, nil
}

// Attach implements [runtime.Streamer].
func (r *Runtime) Attach(ctx context.Context, id string, streams runtime.Streams) error {
	c, err := r.mayExec(id)
	if err != nil {
		return err
	}
	streams = atLeastOne(streams)
	bounded, cancel := r.ask(ctx)
	defer cancel()
	response, err := r.cri.Attach(bounded, &runtimeapi.AttachRequest{
		ContainerId: c.id, Tty: streams.TTY, Stdin: streams.Stdin != nil, Stdout: streams.Stdout != nil, Stderr: streams.Stderr != nil && !streams.TTY,
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return r.notRunning(c, fmt.Errorf("cri: attach to %s: %w", id, err))
	}
	if err := stream(ctx, response.Url, streams); err != nil {
		return fmt.Errorf("cri: attach to %s: %w", id, err)
	}
	return nil
}

// atLeastOne adds an output to a command without streams: CRI rejects commands without streams.
func atLeastOne(streams runtime.Streams) runtime.Streams {
	if streams.Stdin == nil && streams.Stdout == nil && (streams.Stderr == nil || streams.TTY) {
		streams.Stdout = io.Discard
	}
	return streams
}

// stream connects a client to what the container runtime serves at an address of its own.
func stream(ctx context.Context, address string, streams runtime.Streams) error {
	at, err := url.Parse(address)
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{}, "POST", at)
	if err != nil {
		return err
	}
	options := remotecommand.StreamOptions{Stdin: streams.Stdin, Stdout: streams.Stdout, Stderr: streams.Stderr, Tty: streams.TTY}
	if streams.TTY {
		options.Stderr = nil
	}
	if streams.Resize != nil {
		options.TerminalSizeQueue = sizes{ctx, streams.Resize}
	}
	err = executor.StreamWithContext(ctx, options)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// sizes are those of a terminal, in the form that client-go takes them.
type sizes struct {
	ctx context.Context
	of  <-chan runtime.TerminalSize
}

func (s sizes) Next() *remotecommand.TerminalSize {
	select {
	case size, more := <-s.of:
		if !more {
			return nil
		}
		return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
	case <-s.ctx.Done():
		return nil
	}
}
