package shutdown

import (
	"context"
	"time"
)

// Host announces shutdowns of the machine: logind.
type Host interface {
	// Delay has the host delay a shutdown. It returns the maximum delay, and a function that ends the
	// delay.
	Delay(ctx context.Context) (atMost time.Duration, release func(), err error)
	// Announcements delivers true when a shutdown is about to begin, and false when it was canceled. The first value may be
	// the present state, for a listener that was disconnected. The channel is closed when the host is unreachable, or ctx
	// ends.
	Announcements(ctx context.Context) (<-chan bool, error)
}

// Run follows the host until ctx ends, then returns nil. It reconnects to an unreachable host.
func (m *Manager) Run(ctx context.Context) error {
	defer m.Close()
	if m.o.Host == nil {
		<-ctx.Done()
		return nil
	}
	Follow(ctx, m.o.Host, Listener{
		Delays: func(atMost time.Duration) {
			if allowed := m.graceWithin(atMost); allowed < m.o.Grace {
				m.o.Logger.Warn("pods get less time to end than configured; raise InhibitDelayMaxSec of logind",
					"configured", m.o.Grace, "allowed", allowed)
			}
		},
		Begin:  func(atMost time.Duration) <-chan struct{} { return m.begin(m.graceWithin(atMost), true) },
		Cancel: m.cancelAnnounced,
	}, m.o.Logger)
	return nil
}

// graceWithin is the configured grace, or less if the host allows less. The rest of the host's delay is for the last
// statuses.
func (m *Manager) graceWithin(atMost time.Duration) time.Duration {
	return min(m.o.Grace, max(atMost-settleTime, atMost/2))
}

// cancelAnnounced ends a shutdown that the host had announced. A node that an operator had drained before stays so.
func (m *Manager) cancelAnnounced() {
	m.mu.Lock()
	announced := m.down != nil && m.down.announced
	m.mu.Unlock()
	if announced {
		m.Cancel()
	}
}
