package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/control"
)

// maxRedials bounds how often a connection is made again that a living shim has closed,
// which no shim does more than once.
const maxRedials = 3

// hear takes in what the shim of a container has sent.
func (r *Runtime) hear(c *container) {
	state, connected, err := r.exits.receive(c)
	if err != nil {
		r.options.Logger.Warn("connection to a shim failed", "uid", c.uid, "id", c.spec.ID, "err", err)
	}
	r.apply(c, state.Started, state.Exit)
	if !connected && !r.exits.ended(c) && r.mayRedial(c) {
		r.connect(c)
	}
}

func (r *Runtime) mayRedial(c *container) bool {
	r.exits.mu.Lock()
	defer r.exits.mu.Unlock()
	c.redialled++
	return c.redialled <= maxRedials
}

// connect connects to a shim that an earlier statusd started. Without a connection the
// container is managed by its records and by signals, as those of earlier releases are.
func (r *Runtime) connect(c *container) {
	fd, err := control.Dial(c.dir.Control())
	if err == nil {
		err = r.exits.connect(fd, c)
	}
	if err != nil {
		r.options.Logger.Debug("no connection to a shim, using its records", "uid", c.uid, "id", c.spec.ID, "err", err)
	}
}

// The pauses between attempts to connect to a shim that has just been started.
const (
	firstReach   = 20 * time.Millisecond
	longestReach = 5 * time.Second
)

// reachStarting connects to shims that an earlier statusd started in its last moment and that
// had no socket yet when this one looked. Their containers would stay Created.
func (r *Runtime) reachStarting(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		for _, c := range p.containers {
			if c.view.State == runtime.Created {
				r.sweeps.Go(func() { r.reach(ctx, c) })
			}
		}
	}
}

// reach tries until the shim says how far it is or has ended.
func (r *Runtime) reach(ctx context.Context, c *container) {
	for pause := firstReach; r.stateOf(c) == runtime.Created; pause = min(2*pause, longestReach) {
		ended, connected := r.exits.reached(c)
		if ended || connected {
			return // Run hears of it
		}
		r.connect(c)
		r.refresh(c)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// awaitStart waits until the shim has said that the container has started or has ended.
// Until then nothing else reads what it says, so that Run need not run.
func (r *Runtime) awaitStart(ctx context.Context, c *container) error {
	defer func() {
		if err := r.exits.attend(c); err != nil {
			r.options.Logger.Warn("connection to a shim failed", "uid", c.uid, "id", c.spec.ID, "err", err)
		}
	}()
	connection, err := r.exits.duplicate(c)
	if err != nil {
		return fmt.Errorf("waiting for the container to start: %w", err)
	}
	if connection < 0 {
		r.refresh(c)
		return nil
	}
	defer unix.Close(connection)
	for r.stateOf(c) == runtime.Created {
		hungUp, err := pollUntilDone(ctx, connection)
		if err != nil {
			return fmt.Errorf("waiting for the container to start: %w", err)
		}
		r.hear(c)
		if hungUp {
			r.refresh(c) // its records say how far the shim came
			return nil
		}
	}
	return nil
}

// pollUntilDone waits until there is something to read, or nothing more to come, or the
// context is done.
func pollUntilDone(ctx context.Context, fd int) (hungUp bool, err error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return false, err
	}
	defer unix.Close(wake)
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_, _ = unix.Write(wake, binary.NativeEndian.AppendUint64(nil, 1)) // an empty counter takes it
	})
	defer func() {
		if !stop() {
			<-woken // it may not touch a descriptor that is closed
		}
	}()
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(poll, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false, err
		case poll[0].Revents != 0:
			return poll[0].Revents&unix.POLLHUP != 0, nil
		default:
			return false, ctx.Err()
		}
	}
}

// introductionTimeout bounds how long New waits for shims to say how far they are. They
// answer at once unless they are stopped or the machine is very busy; later answers are
// taken in by Run.
const introductionTimeout = 2 * time.Second

// hearAll lets all shims that are connected say how far they are.
func (r *Runtime) hearAll() {
	deadline := time.Now().Add(introductionTimeout)
	for _, c := range r.connected() {
		if speaks(c.control, deadline) {
			r.hear(c)
		}
	}
}

// speaks waits until there is something to read, and reports whether there is before the deadline.
// Signals, such as those for children that end, do not end the wait.
func speaks(fd int, deadline time.Time) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, int(max(0, time.Until(deadline)).Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

// connected lists the containers with a connection. Only New uses it, while no other
// goroutine knows the runtime.
func (r *Runtime) connected() []*container {
	var all []*container
	for _, w := range r.exits.byFD {
		if w.control {
			all = append(all, w.container)
		}
	}
	return all
}
