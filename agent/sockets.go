package agent

import (
	"net"

	"github.com/statusd/statusd/internal/unixsocket"
)

// querySocket in the state directory serves what the endpoints do.
const querySocket = "statusd.sock"

// sockets are the Unix sockets that an agent serves. Nil: none.
type sockets struct{ query net.Listener }

// openSockets binds them. That one cannot be bound, as on a read-only file system, keeps no pod from
// running.
func (a *Agent) openSockets() {
	a.sockets.query = a.openSocket("query", a.config.QuerySocketPath())
}

func (a *Agent) openSocket(name, path string) net.Listener {
	if path == "" {
		return nil
	}
	listener, err := unixsocket.Listen(path)
	if err != nil {
		a.log.Warn("socket not available", "socket", name, "path", path, "err", err)
		return nil
	}
	return listener
}
