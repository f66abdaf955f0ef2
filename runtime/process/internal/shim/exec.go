package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// The first arguments, after the container's ID, of the shim of a command that is executed inside a
// container. The rest is the command.
const (
	ExecArgument         = "exec"
	ExecTerminalArgument = "exec-terminal"
)

// StreamsFD is the first descriptor of the command's streams: three descriptors, or one for a
// terminal.
const StreamsFD = ControlFD + 1

// ExecMain is the shim of a command that is executed inside the container in the working directory. As a subreaper,
// the shim is an ancestor of all processes that the command starts.
//
// When its connection to the runtime ends before the command, because the client has disconnected
// or statusd was killed, the shim kills the command with all its processes. When the command ends
// by itself, its background processes stay, as in other container runtimes, and so does the shim:
// the shim's environment makes it, and with it all its descendants, part of the container.
func ExecMain(terminal bool, command []string) int {
	e := &execution{signals: listen(), command: command}
	if err := e.prepare(".", terminal); err != nil {
		complain("this program is started by statusd itself", err)
		return 2
	}
	e.run()
	e.connection.file.Close() // and not earlier, as when nothing refers to it: the runtime takes it for our end
	return 0
}

// execution is a shim of a command.
type execution struct {
	spec       record.Spec
	container  record.Started
	command    []string
	streams    streams
	signals    signals
	connection *connection
}

func (e *execution) prepare(dir record.Dir, terminal bool) error {
	if !control.IsPair(ControlFD) {
		return fmt.Errorf("descriptor %d is not the socket of a shim", ControlFD)
	}
	unix.CloseOnExec(ControlFD)
	e.connection = newConnection(ControlFD)
	if len(e.command) == 0 {
		return errors.New("no command")
	}
	if terminal {
		unix.CloseOnExec(StreamsFD)
		e.streams = onTerminal(os.NewFile(StreamsFD, "terminal"))
	} else {
		for i := range e.streams.files {
			unix.CloseOnExec(StreamsFD + i)
			e.streams.files[i] = os.NewFile(uintptr(StreamsFD+i), "stream")
		}
	}
	if err := record.Read(dir.Spec(), &e.spec); err != nil {
		return err
	}
	if e.spec.View != nil {
		if err := record.Read(dir.Started(), &e.container); err != nil {
			return err
		}
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func (e *execution) run() {
	unix.Umask(0o022)
	main, err := startDependent(e.spec, &e.container.Main, e.command, e.streams)
	if !e.streams.terminal { // which would seem to end when the command lets go of it for a moment
		e.streams.close()
	}
	if err != nil {
		e.report(control.Command{Error: logfile.LastBytes(err.Error(), MaxMessageBytes)})
		return
	}
	id, err := proc.Identify(main)
	if err != nil {
		complain("identifying a command", err)
	}
	e.report(control.Command{Main: id})
	gone := e.follow()
	if code, ended := e.wait(main, gone); ended && e.learned(code, gone) {
		e.awaitBackground()
		return
	}
	if err := (proc.Members{Ancestor: os.Getpid()}).Kill(killTimeout); err != nil {
		complain("killing a command", err)
	}
}

// follow returns a channel that gets how the connection to the runtime has ended.
func (e *execution) follow() <-chan error {
	gone := make(chan error, 1)
	go func() {
		for {
			if _, err := e.connection.receive(); err != nil {
				gone <- err
				return
			}
		}
	}()
	return gone
}

// learned reports whether the runtime has learned how the command ended. A runtime that is killed takes the command's input and
// terminal with it, by which the command may end before the connection does: that is no end of its own. The runtime hangs up when it
// has read the report; if it ends before, the kernel resets the connection.
func (e *execution) learned(exitCode int, gone <-chan error) bool {
	if !e.report(control.Command{ExitCode: &exitCode}) {
		return false
	}
	err := <-gone
	return errors.Is(err, io.EOF) && !errors.Is(err, control.ErrUnread)
}

// wait reports false if the runtime has gone before the command has ended.
func (e *execution) wait(main int, gone <-chan error) (exitCode int, ended bool) {
	for {
		select {
		case <-e.signals.children:
			if status, ended := reapUntil(main); ended {
				return exitCode128(status), true
			}
		case <-gone:
			return 0, false
		case <-e.signals.stop:
		case <-e.signals.ignored:
		}
	}
}

// awaitBackground returns when nothing is left of what the command has started.
func (e *execution) awaitBackground() {
	e.connection.file.Close()
	e.streams.close() // again, unless it is a terminal
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// report sends how far the command has come, and reports whether there is a runtime that could read it.
func (e *execution) report(command control.Command) bool {
	var err error
	waitErr := e.connection.raw.Control(func(fd uintptr) { err = control.Send(int(fd), command) })
	if err := errors.Join(waitErr, err); err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		complain("reporting a command", err)
	}
	return waitErr == nil && err == nil
}

// exitCode128 is 128 plus the signal for a process that a signal ended, as in a shell.
func exitCode128(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
