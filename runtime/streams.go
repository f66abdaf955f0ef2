package runtime

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/types"
)

// TerminalSize is how many characters a terminal has.
type TerminalSize struct{ Width, Height uint16 }

// Streams are what a command is connected to. A nil one is not asked for: the command then
// reads an empty stdin, and what it writes is dropped.
type Streams struct {
	Stdin  io.Reader
	Stdout io.Writer
	// Stderr is not used with TTY: a terminal has one output.
	Stderr io.Writer
	// TTY makes the three streams of the command a terminal of its own. For Attach it is true
	// if the container was started with one.
	TTY bool
	// Resize delivers the size of the terminal, first of all and whenever it changes; nil is
	// a size that is not known.
	Resize <-chan TerminalSize
}

// Streamer is implemented by a runtime that can connect clients to containers while they run.
// Without it, kubectl exec, attach and port-forward fail on the node.
//
// The methods read Stdin in a goroutine that may still be in a Read when the method returns:
// the caller ends such a Read by closing what it reads from. Stdout and Stderr are not written
// to after the return, which therefore waits for a Write that hangs. A Stdin that ends, or fails, closes the stdin of the command, and a
// Stdout or Stderr that fails ends the command.
type Streamer interface {
	// ExecStream runs a command inside a running container and waits until it has ended and
	// all that it wrote was delivered. A command that ends by itself is no error, whatever its
	// exit code, which is 128 plus the signal if a signal ended it. When ctx ends, or the
	// caller's process, the command is killed with everything it has started. A client that
	// reads slowly makes the command wait. It returns [ErrNotRunning] for a container that does
	// not run; the end of the container kills the command, with exit code 137.
	ExecStream(ctx context.Context, id string, command []string, streams Streams) (exitCode int, err error)

	// Attach connects a client to the streams of the container itself, until the container ends
	// (no error) or ctx does. It begins with what the container writes from now on. It never
	// ends the container. A client that stops reading does not stop the container: it is
	// detached with [ErrTooSlow]. Several clients may be attached. Stdin reaches a container
	// whose spec has stdin; for another one it is not read. The end of Stdin closes the
	// container's stdin if its spec has stdinOnce and no tty.
	Attach(ctx context.Context, id string, streams Streams) error

	// PortForward copies between the stream and a port of the pod until both directions have
	// ended, one of them fails, or ctx ends. It closes the stream. If the stream has a CloseWrite method
	// then an end of the pod's data is passed on by it while the other direction goes on.
	PortForward(ctx context.Context, uid types.UID, port int32, stream io.ReadWriteCloser) error
}
