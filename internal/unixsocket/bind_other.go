//go:build !linux

package unixsocket

import (
	"errors"
	"net"
	"os"
)

// short is the path itself.
func short(path string) (name string, release func(), err error) {
	return path, func() {}, nil
}

// bind listens on the path. The directory keeps others out until the mode is set.
func bind(_, path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
