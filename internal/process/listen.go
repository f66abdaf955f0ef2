package process

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/unixsocket"
)

// A statusd that is killed while it starts a process leaves its listener to that process, until that
// runs its program: moments, but the next statusd may come within them.
const (
	listenPatience = 2 * time.Second
	listenPoll     = 20 * time.Millisecond
)

// Listen binds a TCP address, which may be in use for a moment.
func Listen(address string) (net.Listener, error) {
	deadline := time.Now().Add(listenPatience)
	for {
		listener, err := net.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return listener, err
		}
		time.Sleep(listenPoll)
	}
}

// OpenSocket binds a Unix socket; nil if the path is empty. If the socket cannot be bound, as on a
// read-only file system, it logs the error and returns nil too, so that the process runs without the
// socket.
func OpenSocket(log *slog.Logger, name, path string) net.Listener {
	if path == "" {
		return nil
	}
	listener, err := unixsocket.Listen(path)
	if err != nil {
		log.Warn("socket not available", "socket", name, "path", path, "err", err)
		return nil
	}
	return listener
}
