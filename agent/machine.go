package agent

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/node"
)

// machineInterval is how often the addresses of the machine are looked at.
const machineInterval = 5 * time.Second

// addressBook caches the last good reading of this machine. Node, pods and probes all read their
// addresses from it, so that a change, such as a new DHCP lease, applies to all of them.
type addressBook struct {
	read     func() (node.Reading, error)
	interval time.Duration
	log      *slog.Logger
	// changed is called, outside the lock, when the addresses differ from those before.
	changed func(context.Context)

	mu   sync.Mutex // guards last
	last node.Reading
}

// look reads the machine. A machine without an address, as when a cable is unplugged, keeps its
// last addresses: pods are reachable there again once the link is back.
func (m *addressBook) look() (node.Reading, error) {
	reading, err := m.read()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		return reading, err
	}
	if len(reading.Addresses) == 0 {
		reading.Addresses = m.last.Addresses
	}
	m.last = reading
	return reading, nil
}

// latest is the last good reading.
func (m *addressBook) latest() node.Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// run looks at the machine until ctx ends.
func (m *addressBook) run(ctx context.Context) error {
	known := m.latest().Addresses
	wake.Every(ctx, m.interval, func() {
		if _, err := m.look(); err != nil {
			m.log.Warn("machine not readable", "err", err)
			return
		}
		// Another caller of look may have observed the change first.
		if now := m.latest().Addresses; !slices.Equal(known, now) {
			m.log.Info("addresses changed", "from", known, "to", now)
			known = now
			m.changed(ctx)
		}
	})
	return nil
}

// addresses are the IP addresses of this machine, the primary address first: from the config, or
// else from the last reading of the machine.
func (a *Agent) addresses() []string {
	if configured := a.config.Node.Addresses; len(configured) > 0 {
		return configured
	}
	return a.machine.latest().Addresses
}

// addressesChanged reports every pod and the Node with the new addresses. Probes take their target
// from the reported status.
func (a *Agent) addressesChanged(ctx context.Context) {
	for _, pod := range a.table.All() {
		a.workers.Sync(pod.UID)
	}
	if a.node == nil || !a.isIdentified() {
		return
	}
	if err := a.node.Report(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("node not up to date after a change of addresses, retrying", "err", err)
	}
}

// here returns this machine as a Node: with its current capacity, and with the labels and taints in
// the API, once known.
func (a *Agent) here() (*v1.Node, error) {
	options := a.nodeOptions()
	options.Read = func() (node.Reading, error) { return a.machine.latest(), nil }
	here, err := node.Describe(options)
	if err != nil || a.node == nil {
		return here, err
	}
	return asShown(here, a.node.Current()), nil
}

// asShown returns the node with the labels and taints of current, if it is known.
func asShown(here, current *v1.Node) *v1.Node {
	if current != nil {
		here.Labels, here.Spec.Taints = current.Labels, current.Spec.Taints
	}
	return here
}

// allocatable returns the allocatable resources of this node.
func (a *Agent) allocatable() v1.ResourceList {
	here, err := a.here()
	if err != nil {
		return nil
	}
	return here.Status.Allocatable
}
