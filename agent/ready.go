package agent

import (
	"github.com/statusd/statusd/runtime"
)

// notReady returns why this node cannot accept pods, or nil. An unreachable API server is not a
// reason: the node controller detects it by the lease.
func (a *Agent) notReady() error {
	if err := a.shutdown.Err(); err != nil {
		return err
	}
	if gate, ok := a.runtime.(runtime.Gate); ok {
		if err := gate.NotReady(); err != nil {
			return err
		}
	}
	return writableState(a.config.StateDir)
}
