package shutdown

import (
	"context"
	"time"
)

// Host is what knows of shutdowns of the machine: logind.
type Host interface {
	// Delay has the host delay a shutdown. It returns how long at most, and a function that lets it go on.
	Delay(ctx context.Context) (atMost time.Duration, release func(), err error)
	// Announcements delivers true when a shutdown is about to begin, and false when it was canceled. At first it may deliver
	// whether one is under way, for a listener that has not heard the host for a while. The channel is closed when the host
	// cannot be heard any more, or ctx ends.
	Announcements(ctx context.Context) (<-chan bool, error)
}

// Run follows the host until ctx ends, then returns nil. A host that cannot be heard is tried again.
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

// graceWithin is the configured grace, or what the host allows if that is less. What is left is for the last statuses.
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
