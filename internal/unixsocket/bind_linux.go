package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

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

// bind listens by a short name of the path.
func bind(name, path string) (net.Listener, error) {
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
	return l, nil
}
