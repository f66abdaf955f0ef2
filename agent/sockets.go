package agent

import (
	"net"

	"github.com/statusd/statusd/internal/daemon"
)

// What is served in the state directory, unless the config has other paths.
const (
	querySocket = "statusd.sock" // what the endpoints serve
	podsSocket  = "pods.sock"    // the kubelet's Pods API
)

// sockets are the Unix sockets that an agent serves. Nil: none.
type sockets struct{ query, pods net.Listener }

// openSockets binds them. That one cannot be bound, as on a read-only file system, keeps no pod from
// running.
func (a *Agent) openSockets() {
	a.sockets.query = daemon.OpenSocket(a.log, "query", a.config.QuerySocketPath())
	a.sockets.pods = daemon.OpenSocket(a.log, "pods", a.config.PodsSocketPath())
}
