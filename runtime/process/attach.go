package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/control"
)

// dialAgain is the pause before a shim is asked again to which more clients connect at once
// than it can take in.
const dialAgain = 10 * time.Millisecond

// Attach implements [runtime.Streamer]. The client is connected to the shim, which has the
// container's streams. A client that reads slowly blocks the container, as a terminal blocks a
// program. A client that has read nothing for a second is detached.
func (r *Runtime) Attach(ctx context.Context, id string, streams runtime.Streams) error {
	r.mu.Lock()
	c, err := r.find(id)
	running := err == nil && c.view.State == runtime.Running
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if !running {
		return fmt.Errorf("process: attach to %s: %w", id, runtime.ErrNotRunning)
	}
	if err := c.attach(ctx, streams); err != nil {
		return fmt.Errorf("process: attach to %s: %w", id, err)
	}
	return nil
}

func (c *container) attach(ctx context.Context, streams runtime.Streams) error {
	connection, err := c.dialAttach(ctx)
	if err != nil {
		return err
	}
	client := &client{connection: connection, streams: streams}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer stop()
	var sends sync.WaitGroup
	defer sends.Wait()
	defer connection.Close()
	if err := client.introduce(); err != nil {
		return orContext(ctx, err)
	}
	if streams.Stdin != nil && c.spec.Stdin {
		go client.sendInput() // ends with the client, which may be later
	}
	if streams.Resize != nil && c.spec.TTY {
		sends.Go(func() { client.sendSizes(ctx) })
	}
	err = client.receive()
	cancel()
	if errors.Is(err, io.EOF) {
		return c.detached()
	}
	return orContext(ctx, err)
}

// orContext prefers the reason for which a connection was closed.
func orContext(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// detached is the error for a connection that the shim has closed without saying that the
// container has ended: nil if the shim itself has ended.
func (c *container) detached() error {
	select {
	case <-c.ended:
		return nil
	case <-time.After(shimTimeout):
		return runtime.ErrTooSlow
	}
}

// shimTimeout is how long the end of a shim may take to be noticed.
const shimTimeout = time.Second

func (c *container) dialAttach(ctx context.Context) (*control.Connection, error) {
	for {
		fd, err := control.Dial(c.dir.Attach())
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED):
			return nil, fmt.Errorf("%w: its shim takes no clients (is it one of an earlier release, or has it just ended?): %w", errors.ErrUnsupported, err)
		case err == nil:
			return control.NewConnection(fd)
		case !errors.Is(err, unix.EAGAIN):
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(dialAgain):
		}
	}
}

// client is an attached client.
type client struct {
	connection *control.Connection
	streams    runtime.Streams
}

// introduce returns when the client gets all that the container writes from now on.
func (c *client) introduce() error {
	hasInput := byte(0)
	if c.streams.Stdin != nil {
		hasInput = 1
	}
	if err := c.connection.Send(0, control.Attach, []byte{hasInput}); err != nil {
		return err
	}
	kind, _, err := c.connection.Receive(make([]byte, control.MaxFrame))
	if errors.Is(err, io.EOF) {
		return errors.New("too many clients are attached")
	}
	if err == nil && kind != control.Attached {
		err = fmt.Errorf("the shim answers with a message of kind %d", kind)
	}
	return err
}

// receive delivers output until the container ends.
func (c *client) receive() error {
	buffer := make([]byte, control.MaxFrame)
	for {
		kind, data, err := c.connection.Receive(buffer)
		if err != nil {
			return err
		}
		to := c.streams.Stdout
		switch kind {
		case control.End:
			return nil
		case control.Stderr:
			to = c.streams.Stderr
		}
		if to == nil {
			continue
		}
		if _, err := to.Write(data); err != nil {
			return fmt.Errorf("client takes no output: %w", err)
		}
	}
}

func (c *client) sendInput() {
	buffer := make([]byte, control.MaxFrame-1)
	for {
		n, err := c.streams.Stdin.Read(buffer)
		if n > 0 {
			if sendErr := c.connection.Send(0, control.Stdin, buffer[:n]); sendErr != nil {
				return
			}
		}
		if err != nil {
			_ = c.connection.Send(0, control.StdinEnd, nil) // or the container has ended
			return
		}
	}
}

func (c *client) sendSizes(ctx context.Context) {
	for {
		select {
		case size, open := <-c.streams.Resize:
			if !open || c.connection.Send(0, control.Resize, control.Size(size.Width, size.Height)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
