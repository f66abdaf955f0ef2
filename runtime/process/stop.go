package process

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// StopContainer implements [runtime.Runtime]. The shim counts the grace and kills, so that it
// happens even if statusd dies meanwhile. The request goes over the shim's socket, which works on a
// full or read-only disk.
func (r *Runtime) StopContainer(_ context.Context, id string, grace time.Duration) error {
	r.mu.Lock()
	c, err := r.find(id)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if r.stateOf(c) == runtime.Exited {
		return nil
	}
	grace = max(0, grace)
	alive, err := r.exits.send(c, control.Request{Stop: &record.Stop{Grace: grace}})
	if err == nil || !alive {
		return nil
	}
	if err := r.stopBySignal(c, grace); err != nil {
		return fmt.Errorf("process: stop %s: %w", id, err)
	}
	return nil
}

// stopBySignal is for a shim that cannot be reached over its socket: one of an earlier
// release, or one whose socket was deleted. Such a shim reads the grace from a
// file. If that cannot be written, the command is signalled directly.
func (r *Runtime) stopBySignal(c *container, grace time.Duration) error {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	if err := c.requestStop(grace); err != nil {
		r.options.Logger.Warn("shim cannot be asked to stop the container, signalling its command", "uid", c.uid, "id", c.spec.ID, "err", err)
		return r.signalCommand(c, grace)
	}
	return r.exits.signal(c, unix.SIGUSR1)
}

// requestStop keeps the shortest grace that was ever asked for. A longer one that comes
// later ends later, and the shim would not take it anyway.
func (c *container) requestStop(grace time.Duration) error {
	var earlier record.Stop
	err := record.Read(c.dir.Stop(), &earlier)
	if err == nil && earlier.Grace <= grace {
		return nil
	}
	return record.Write(c.dir.Stop(), record.Stop{Grace: grace})
}

// signalCommand sends the stop signal, and SIGKILL when the grace is over. Who the command
// is the shim has said; if not, the shim is killed, and with it goes the container.
func (r *Runtime) signalCommand(c *container, grace time.Duration) error {
	r.mu.Lock()
	started := c.started
	r.mu.Unlock()
	if started == nil {
		return r.exits.signal(c, unix.SIGKILL)
	}
	if grace == 0 {
		return started.Main.Signal(unix.SIGKILL)
	}
	if c.kill == nil {
		if err := started.Main.Signal(unix.Signal(c.spec.StopSignal)); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(grace)
	if c.kill != nil && !deadline.Before(c.killAt) {
		return nil
	}
	if c.kill != nil {
		c.kill.Stop()
	}
	c.killAt, c.kill = deadline, time.AfterFunc(grace, func() {
		if err := started.Main.Signal(unix.SIGKILL); err != nil {
			r.options.Logger.Error("killing a container failed", "uid", c.uid, "id", c.spec.ID, "err", err)
		}
	})
	return nil
}
