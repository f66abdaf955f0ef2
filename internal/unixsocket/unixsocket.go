// Package unixsocket listens on and connects to Unix sockets. On Linux their paths may be longer than the 107 bytes
// that the kernel takes.
package unixsocket

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
)

// ErrInUse: another process listens on the socket.
var ErrInUse = errors.New("another process listens on it")

// mode: only the owner may connect.
const mode = 0o600

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

// Listen binds a socket of mode 0600 at a path. It replaces only a socket without a listening process:
// neither a socket in use ([ErrInUse]), nor a file that is not a socket. Closing the listener removes
// the socket.
func Listen(path string) (net.Listener, error) {
	if err := removeDead(path); err != nil {
		return nil, err
	}
	name, release, err := short(path)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := bind(name, path)
	if err != nil {
		return nil, err
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
	if !errors.Is(err, syscall.ECONNREFUSED) {
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
