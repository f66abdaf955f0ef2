package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"

	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/runtime"
)

// Memory is the state that successive agents in one process share: the back-offs of failing containers, whether the Node was
// registered since the process started, the clients of the kubelet's API with the runtime that serves them, and the address of the
// health endpoints. The zero value is ready to use. One agent at a time may use a Memory.
type Memory struct {
	workers worker.Memory
	node    nodeMemory
	left    left
	fronts  process.Fronts
	forgets bool // the program has no Memory: all resources are closed with the agent
}

// nodeMemory is the memory of one Node: after a reload with another name or API server there is another Node, to be registered.
type nodeMemory struct {
	name, apiServer string
	memory          *node.Memory
}

// nodeOf returns the memory of a Node.
func (m *Memory) nodeOf(name, apiServer, stateDir string) *node.Memory {
	if m.node.memory == nil || m.node.name != name || m.node.apiServer != apiServer {
		m.node = nodeMemory{name, apiServer, &node.Memory{}}
	}
	m.node.memory.CordonFile = filepath.Join(stateDir, cordonFile)
	return m.node.memory
}

// left has the open resources of an agent that ended for a reload.
type left struct {
	stateDir string
	runtime  runtime.Runtime // nil: nothing
	serving  serving
	server   inside.Server // nil: none
	listener net.Listener
}

// serving has the settings that must be equal for two agents to serve the same clients.
type serving struct{ bindAddress, nodeName, stateDir, apiServer string }

// Close closes the resources that the last agent has left for a successor. Call Close when no agent runs any more. Open
// requests of clients end with an error.
func (m *Memory) Close() error {
	return errors.Join(m.closeServer(), m.closeRuntime(), m.fronts.Close())
}

// Fronts returns the addresses of the endpoints, or nil without a Memory. Like [Agent.Inside], Fronts is for the commands of
// this module.
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

// awaitReload runs as long as the agent, and records whether a reload ends it.
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

// serving returns the settings that serve the clients of the kubelet's API.
func (a *Agent) serving() serving {
	return serving{a.config.Server.BindAddress, a.nodeName, a.config.StateDir, a.apiServer}
}

// takeOver takes over the server of the previous agent, or ends the server if address, node, cluster or state directory have changed, or
// if the runtime cannot continue.
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
