// Package control is how the runtime and a shim talk while both run: short messages over
// a Unix socket that keeps their boundaries. Neither needs room on a disk for it.
//
// A shim has one connection from the start, a socket pair that the runtime made, and
// takes more on a socket in the container's directory, so that the next statusd finds
// it. Over each connection it sends its State when the connection is made and whenever
// the state changes, and takes Requests.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// Request is a request of the runtime to a shim.
type Request struct {
	// Go is the ID of the container to start; the first request, over the socket pair.
	Go string `json:"go,omitempty"`
	// Stop requests the end of the container. A later request can only shorten the grace period.
	Stop *record.Stop `json:"stop,omitempty"`
	// Forget ends a shim that still tries to write the record of the exit.
	Forget bool `json:"forget,omitempty"`
}

// State is the progress of a container.
type State struct {
	Started *record.Started `json:"started,omitempty"`
	// Exit is sent when the record of the exit could not be written. The record is written as soon
	// as possible.
	Exit *record.Exit `json:"exit,omitempty"`
}

// Command is the progress of a command that is executed inside a container. Its shim sends a
// Command when the command has started and when it has ended.
type Command struct {
	Main proc.ID `json:"main,omitzero"`
	// Error is why the command did not start.
	Error string `json:"error,omitempty"`
	// ExitCode is 128 plus the signal for a command that was ended by a signal.
	ExitCode *int `json:"exitCode,omitempty"`
}

// The size limits exceed all messages: the longest state contains a termination message, whose
// bytes JSON can expand to six bytes each.
const (
	maxRequest = 1 << 10
	maxState   = 64 << 10
)

// ErrNothing is returned when no message has arrived yet.
var ErrNothing = errors.New("no message")

// ErrUnread is the end of a connection, like [io.EOF], whose other side has closed it without reading all messages.
var ErrUnread = fmt.Errorf("gone with messages unread: %w", io.EOF)

// Pair returns the two ends of the connection that a shim has from the start.
func Pair() (ours, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("socket pair: %w", err)
	}
	return fds[0], fds[1], nil
}

// IsPair reports whether a descriptor can be an end of a Pair, so that a shim that was started by
// hand does not use another descriptor.
func IsPair(fd int) bool {
	for option, want := range map[int]int{unix.SO_DOMAIN: unix.AF_UNIX, unix.SO_TYPE: unix.SOCK_SEQPACKET, unix.SO_ACCEPTCONN: 0} {
		if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); err != nil || got != want {
			return false
		}
	}
	return true
}

// Send does not block: it returns an error if there is no room for the message.
func Send(fd int, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if err := unix.Sendto(fd, data, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// ReceiveRequest does not block: it returns ErrNothing if no message has arrived, and io.EOF at the
// end of the connection.
func ReceiveRequest(fd int) (request Request, err error) {
	err = receive(fd, make([]byte, maxRequest), &request)
	return request, err
}

// ReceiveState is ReceiveRequest for states.
func ReceiveState(fd int) (state State, err error) {
	err = receive(fd, make([]byte, maxState), &state)
	return state, err
}

// ReceiveCommand is ReceiveRequest for commands.
func ReceiveCommand(fd int) (command Command, err error) {
	err = receive(fd, make([]byte, maxState), &command)
	return command, err
}

func receive(fd int, buffer []byte, message any) error {
	for {
		n, _, err := unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return ErrNothing
		case errors.Is(err, unix.ECONNRESET):
			return ErrUnread
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		case n == 0:
			return io.EOF
		}
		return json.Unmarshal(buffer[:n], message)
	}
}

// short calls use with a name of the socket that fits into the 108 bytes which the kernel
// has for it, however long the directory is called.
func short(path string, use func(address *unix.SockaddrUnix) error) error {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", filepath.Dir(path), err)
	}
	defer unix.Close(dir)
	return use(&unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(dir) + "/" + filepath.Base(path)})
}

func newSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	return fd, nil
}

// backlog is how many connections can wait: that of a statusd and those of its
// predecessors that have just died, or as many clients as attach at once.
const backlog = 64

// Listen creates the socket at path, for this process's user only. Listen temporarily changes the
// umask of the whole process.
func Listen(path string) (int, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return -1, err
	}
	fd, err := newSocket()
	if err != nil {
		return -1, err
	}
	before := unix.Umask(0o177)
	err = short(path, func(address *unix.SockaddrUnix) error { return unix.Bind(fd, address) })
	unix.Umask(before)
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("listen on %s: %w", path, err), unix.Close(fd))
	}
	return fd, nil
}

// Accept accepts a waiting connection of this process's user or of root.
func Accept(listener int) (int, error) {
	fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return -1, err
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err == nil && peer.Uid != 0 && int(peer.Uid) != os.Geteuid() {
		err = unix.EACCES
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// Dial connects to the socket at path. Dial does not block.
func Dial(path string) (int, error) {
	fd, err := newSocket()
	if err != nil {
		return -1, err
	}
	if err := short(path, func(address *unix.SockaddrUnix) error { return unix.Connect(fd, address) }); err != nil {
		return -1, errors.Join(fmt.Errorf("connect to %s: %w", path, err), unix.Close(fd))
	}
	return fd, nil
}
