package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

var _ runtime.Streamer = (*Runtime)(nil)

// exitCodeKilled is the exit code of a command that SIGKILL ended.
const exitCodeKilled = 128 + int(syscall.SIGKILL)

// ExecStream implements [runtime.Streamer]. The command has a shim of its own, which ends it with
// all that it has started when this process ends or asks for it.
//
// Processes that the command leaves in the background when it ends stay in the container. Their
// output is delivered for one more second, unless they close the streams earlier.
func (r *Runtime) ExecStream(ctx context.Context, id string, command []string, streams runtime.Streams) (int, error) {
	c, err := r.mayExec(id, command)
	if err != nil {
		return 0, err
	}
	code, err := r.execStream(ctx, c, command, streams)
	if err != nil {
		return code, fmt.Errorf("process: exec %s in %s: %w", command[0], id, err)
	}
	return code, nil
}

// mayExec finds a container that a command can be executed in.
func (r *Runtime) mayExec(id string, command []string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.find(id)
	if err != nil {
		return nil, err
	}
	if c.view.State != runtime.Running {
		return nil, fmt.Errorf("process: exec in %s: %w", id, runtime.ErrNotRunning)
	}
	if len(command) == 0 {
		return nil, fmt.Errorf("process: exec in %s: no command", id)
	}
	return c, nil
}

func (r *Runtime) execStream(ctx context.Context, c *container, command []string, streams runtime.Streams) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pipes, err := openPipes(streams, shim.Credential(c.spec.User))
	if err != nil {
		return 0, err
	}
	defer r.commandEnded(c)
	s, err := r.startSession(c, command, pipes)
	if err != nil {
		pipes.close()
		return 0, err
	}
	c.sessions.Store(s.shim, true)
	defer c.sessions.Delete(s.shim)
	pipes.copy(streams, cancel)
	code, err := s.wait(ctx, c.ended)
	pipes.finish(err == nil)
	if err == nil {
		return code, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return 0, cause
	}
	select {
	case <-c.ended: // before the command could start
		return 0, fmt.Errorf("%w: %w", runtime.ErrNotRunning, err)
	default:
		return 0, err
	}
}

// session is the shim of a command.
type session struct {
	connection *os.File
	raw        syscall.RawConn
	shim       proc.ID
	main       proc.ID // of the command
}

// startSession starts the shim. The command may fail to start: see wait.
func (r *Runtime) startSession(c *container, command []string, pipes *pipes) (*session, error) {
	ours, theirs, err := control.Pair()
	if err != nil {
		return nil, err
	}
	mode := shim.ExecArgument
	if pipes.terminal != nil {
		mode = shim.ExecTerminalArgument
	}
	program, arguments := r.options.shimCommand(c.spec.ID)
	end := os.NewFile(uintptr(theirs), "shim control")
	defer end.Close()
	connection := os.NewFile(uintptr(ours), "shim control")
	raw, err := connection.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	var pidfd int
	process, err := r.spawnShim(c.dir, shimProgram{
		path: program, arguments: append(append(arguments, mode), command...),
		// By which it belongs to the container, with all that the command leaves behind.
		variable: c.marker(),
		files:    append([]*os.File{end}, pipes.theirs...),
	}, &pidfd)
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	pipes.closeTheirs()
	s := &session{connection: connection, raw: raw}
	s.shim, err = proc.Identify(process.Pid)
	if err := errors.Join(err, process.Release(), r.exits.reap(pidfd)); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return s, nil
}

// hangUp makes the shim kill the command, unless that has ended.
func (s *session) hangUp() error {
	var err error
	waitErr := s.raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
	return errors.Join(waitErr, err)
}

// wait returns how the command ended. When ctx or the container ends, the command is killed.
func (s *session) wait(ctx context.Context, containerEnded <-chan struct{}) (code int, err error) {
	defer s.connection.Close()
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		code, err = s.receive()
	}()
	var hungUp error
	select {
	case <-reported:
	case <-ctx.Done():
		hungUp = s.hangUp()
	case <-containerEnded:
		hungUp = s.hangUp()
	}
	<-reported
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.Is(err, io.EOF): // the shim has killed the command, or was killed
		return exitCodeKilled, errors.Join(hungUp, s.killRest())
	}
	return code, err
}

// receive waits for the exit code of the command.
func (s *session) receive() (code int, err error) {
	for {
		var message control.Command
		waitErr := s.raw.Read(func(fd uintptr) bool {
			message, err = control.ReceiveCommand(int(fd))
			return !errors.Is(err, control.ErrNothing)
		})
		switch {
		case waitErr != nil || err != nil:
			return 0, errors.Join(waitErr, err)
		case message.Error != "":
			return 0, errors.New(message.Error)
		case message.ExitCode != nil:
			return *message.ExitCode, nil
		}
		s.main = message.Main
	}
}

// killRest kills what a shim that was killed has left behind.
func (s *session) killRest() error {
	if s.main.PID == 0 {
		return nil
	}
	return proc.Members{Leader: s.main}.Kill(sweepTimeout)
}

// terminalEnd is what is typed to end the input of a terminal.
const terminalEnd = 4

// copyInput copies until the client's input ends, or the command takes none any more.
func (p *pipes) copyInput(from io.Reader) {
	_, _ = io.Copy(p.input, from) // either end may go away at any time
	if p.terminal == nil {
		p.input.Close()
		return
	}
	_, _ = p.terminal.Write([]byte{terminalEnd})
}

// copyOutput copies until all processes that can write have let go of their end, or the
// deadline is over that finish sets. copyOutput fails if the client takes no more.
func copyOutput(from *os.File, to io.Writer) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return copyBuffered(from, to, buffer)
		}
		if err != nil {
			return nil // of a terminal the end is an error
		}
	}
}

// maxBuffered is more than the kernel keeps for a reader.
const maxBuffered = 1 << 20

// copyBuffered copies what the command has written before it ended and the kernel still holds,
// however slowly the client takes it, and does not wait for more.
func copyBuffered(from *os.File, to io.Writer, buffer []byte) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	for copied := 0; copied < maxBuffered; {
		n, readErr := 0, error(nil)
		if err := raw.Control(func(fd uintptr) { n, readErr = unix.Read(int(fd), buffer) }); err != nil {
			return err
		}
		if n <= 0 || readErr != nil {
			return nil
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return err
		}
		copied += n
	}
	return nil
}

// resize passes the sizes of the client's terminal on until stop is closed.
func (p *pipes) resize(sizes <-chan runtime.TerminalSize, stop <-chan struct{}) {
	for {
		select {
		case size, open := <-sizes:
			if !open {
				return
			}
			p.setSize(size)
		case <-stop:
			return
		}
	}
}

// outputs counts the copies under way.
type outputs struct {
	sync.WaitGroup
	stop chan struct{}
}

// finish waits until all output is delivered. The deadline is for processes in the background.
func (p *pipes) finish(ended bool) {
	deadline := time.Now()
	if ended {
		deadline = deadline.Add(outputTimeout)
	}
	for _, from := range p.outputs {
		if from != nil {
			_ = from.SetReadDeadline(deadline)
		}
	}
	close(p.copies.stop)
	p.copies.Wait()
	p.close()
}
