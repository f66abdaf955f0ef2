package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// StopContainer implements [runtime.Runtime]. The shim counts the grace and kills, so
// that it happens even if statusd dies meanwhile.
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
	if err := c.requestStop(max(0, grace)); err != nil {
		return fmt.Errorf("process: stop %s: %w", id, err)
	}
	if err := r.exits.signal(c, unix.SIGUSR1); err != nil {
		return fmt.Errorf("process: stop %s: %w", id, err)
	}
	return nil
}

// requestStop keeps the shortest grace that was ever asked for. A longer one that comes
// later ends later, and the shim would not take it anyway.
func (c *container) requestStop(grace time.Duration) error {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	var earlier record.Stop
	err := record.Read(c.dir.Stop(), &earlier)
	if err == nil && earlier.Grace <= grace {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return record.Write(c.dir.Stop(), record.Stop{Grace: grace})
}
