package runtime

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/types"
)

// TerminalSize is the size of a terminal in characters.
type TerminalSize struct{ Width, Height uint16 }

// Streams are the streams of a command. With a nil Stdin, the command reads an empty input; output
// to a nil Stdout or Stderr is dropped.
type Streams struct {
	Stdin  io.Reader
	Stdout io.Writer
	// Stderr is not used with TTY: a terminal has one output.
	Stderr io.Writer
	// TTY connects the three streams of the command to a new terminal. For Attach, TTY is true if
	// the container was started with a terminal.
	TTY bool
	// Resize delivers the initial size of the terminal and each change; nil if the size is unknown.
	Resize <-chan TerminalSize
}

// Streamer is implemented by a runtime that can connect clients to containers while they run.
// Without it, kubectl exec, attach and port-forward fail on the node.
//
// The methods read Stdin in a goroutine that may still be in a Read when the method returns: the caller ends such a Read by closing the
// underlying reader. Stdout and Stderr are not written to after the return, so the methods wait for a Write that hangs. The end or an
// error of Stdin closes the stdin of the command; an error of Stdout or Stderr ends the command.
type Streamer interface {
	// ExecStream runs a command inside a running container and waits until the command has ended
	// and all its output was delivered. The end of the command is not an error, whatever its exit
	// code, which is 128 plus the signal if a signal ended the command. When ctx or the caller's
	// process ends, the command is killed with all its processes. A client that reads slowly blocks
	// the command. ExecStream returns [ErrNotRunning] for a container that does not run; the end of
	// the container kills the command, with exit code 137.
	ExecStream(ctx context.Context, id string, command []string, streams Streams) (exitCode int, err error)

	// Attach connects a client to the streams of the container itself, until the container ends (no
	// error) or ctx ends. The client receives the output from now on. Attach never ends the
	// container. A client that stops reading does not block the container: the client is detached
	// with [ErrTooSlow]. Several clients may be attached. Stdin is read only if the container's
	// spec has stdin. The end of Stdin closes the container's stdin if its spec has stdinOnce and
	// no tty.
	Attach(ctx context.Context, id string, streams Streams) error

	// PortForward copies between the stream and a port of the pod until both directions have ended, one
	// of them fails, or ctx ends. It closes the stream. If the stream has a CloseWrite method, it is
	// called at the end of the pod's data, while the other direction continues.
	PortForward(ctx context.Context, uid types.UID, port int32, stream io.ReadWriteCloser) error
}
