package agent

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/runtime"
)

// Memory is what agents that follow each other in one process hand on: the back-offs of containers that keep failing, whether
// the Node was registered since the process has started, the clients of the kubelet's API with the runtime that serves them, and the
// address of the health endpoints. The zero value works. One agent at a time uses it.
type Memory struct {
	workers worker.Memory
	node    node.Memory
	left    left
	fronts  process.Fronts
	forgets bool // the program has none: what an agent leaves is closed with it
}

// left is what an agent that ended for a reload has left open.
type left struct {
	stateDir string
	runtime  runtime.Runtime // nil: nothing
	serving  serving
	server   inside.Server // nil: none
	listener net.Listener
}

// serving is what must be the same for two agents to serve the same clients.
type serving struct{ bindAddress, nodeName, stateDir, apiServer string }

// Close closes what the last agent has left for another one that was not made. Call it when no agent runs any more. It ends the
// requests of clients with an error.
func (m *Memory) Close() error {
	return errors.Join(m.closeServer(), m.closeRuntime(), m.fronts.Close())
}

// Fronts have the addresses of the endpoints; nil if the program has no Memory. Fronts is for the commands of this module, as is
// [Agent.Inside].
func (m *Memory) Fronts() *process.Fronts {
	if m == nil || m.forgets {
		return nil
	}
	return &m.fronts
}

func (m *Memory) closeServer() error {
	server := m.left.server
	m.left.server, m.left.listener = nil, nil
	if server == nil {
		return nil
	}
	return server.Close()
}

// closeRuntime ends the clients of the runtime before it closes the runtime.
func (m *Memory) closeRuntime() error {
	err := m.closeServer()
	closer, can := m.left.runtime.(io.Closer)
	m.left.runtime = nil
	if can {
		err = errors.Join(err, closer.Close())
	}
	return err
}

// awaitReload runs as long as the agent, and notes whether a reload ends it.
func (a *Agent) awaitReload(ctx context.Context) error {
	<-ctx.Done()
	a.reloads.Store(errors.Is(context.Cause(ctx), process.ErrReload) && !a.options.Memory.forgets)
	return nil
}

// closeOrLeave closes the server of the kubelet's API and the runtime, or leaves them to the next agent.
func (a *Agent) closeOrLeave() error {
	memory := a.options.Memory
	if a.reloads.Load() && (a.options.Runtime != nil || a.options.Successor != nil) {
		memory.left = left{stateDir: a.config.StateDir, serving: a.serving(), server: a.kubelet.server, listener: a.kubelet.listener}
		if a.options.Runtime == nil {
			memory.left.runtime = a.runtime
		}
		return nil
	}
	var problems []error
	switch {
	case a.kubelet.server != nil:
		problems = append(problems, a.kubelet.server.Close())
	case a.kubelet.listener != nil:
		problems = append(problems, a.kubelet.listener.Close())
	}
	if closer, ok := a.runtime.(io.Closer); ok && a.options.Runtime == nil {
		problems = append(problems, closer.Close())
	}
	return errors.Join(problems...)
}

// closerFunc is a function that closes.
type closerFunc func() error

func (c closerFunc) Close() error { return c() }

// serving is what the clients of the kubelet's API are served by.
func (a *Agent) serving() serving {
	return serving{a.config.Server.BindAddress, a.nodeName, a.config.StateDir, a.apiServer}
}

// takeOver takes over the server of the agent before, or ends it if it cannot: with another address, node, cluster or state directory, or
// for a runtime that cannot go on.
func (a *Agent) takeOver() error {
	left := &a.options.Memory.left
	if left.server == nil {
		return nil
	}
	if left.serving != a.serving() || left.runtime != nil && a.options.Successor == nil {
		a.log.Info("clients of the kubelet's API are disconnected: the config changes what serves them")
		return a.options.Memory.closeServer()
	}
	a.kubelet.listener, a.kubelet.former = left.listener, left.server
	return nil
}
