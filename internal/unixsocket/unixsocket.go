// Package unixsocket listens on and connects to Unix sockets whose paths may be longer than the 107
// bytes that the kernel takes.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrInUse: another process listens on the socket.
var ErrInUse = errors.New("another process listens on it")

// mode: only the owner may connect.
const mode = 0o600

// backlog is how many connections may wait to be accepted.
const backlog = 64

// short makes a path that is short enough, whatever the directory is called. It is good until release.
func short(path string) (name string, release func(), err error) {
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)), func() { _ = unix.Close(fd) }, nil
}

// Dial connects to the socket at a path.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	name, release, err := short(path)
	if err != nil {
		return nil, err
	}
	defer release()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", name)
}

// Listen binds a socket of mode 0600 at a path. It replaces one that no process listens on any more,
// and nothing else: not a living one ([ErrInUse]), and no file that is no socket. Closing the listener
// removes the socket.
func Listen(path string) (net.Listener, error) {
	if err := removeDead(path); err != nil {
		return nil, err
	}
	name, release, err := short(path)
	if err != nil {
		return nil, err
	}
	defer release()
	// The mode is set before the socket can be connected to.
	raw, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(raw), path)
	defer file.Close()
	if err := unix.Bind(raw, &unix.SockaddrUnix{Name: name}); err != nil {
		return nil, &fs.PathError{Op: "bind", Path: path, Err: err}
	}
	if err := errors.Join(os.Chmod(name, mode), os.NewSyscallError("listen", unix.Listen(raw, backlog))); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &listener{Listener: l, path: path}, nil
}

// removeDead removes the socket of a process that has ended.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return &fs.PathError{Op: "listen", Path: path, Err: errors.New("there is a file that is no socket; remove it, or choose another path")}
	}
	connection, err := Dial(context.Background(), path)
	if err == nil {
		_ = connection.Close()
		return &fs.PathError{Op: "listen", Path: path, Err: ErrInUse}
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// listener removes its socket when it is closed.
type listener struct {
	net.Listener
	path    string
	closing sync.Once
}

func (l *listener) Close() (err error) {
	err = net.ErrClosed
	l.closing.Do(func() {
		err = os.Remove(l.path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		err = errors.Join(l.Listener.Close(), err)
	})
	return err
}
