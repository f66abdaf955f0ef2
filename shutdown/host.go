package shutdown

import (
	"context"
	"time"
)

// Host is what knows of shutdowns of the machine: logind.
type Host interface {
	// Delay has the host delay a shutdown. It returns how long at most, and a function that lets it go on.
	Delay(ctx context.Context) (atMost time.Duration, release func(), err error)
	// Announcements delivers true when a shutdown is about to begin, and false when it was canceled.
	// The channel is closed when the host cannot be heard any more, or ctx ends.
	Announcements(ctx context.Context) (<-chan bool, error)
}

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Run follows the host until ctx ends, then returns nil. A host that cannot be heard is tried again.
func (m *Manager) Run(ctx context.Context) error {
	defer m.Close()
	if m.o.Host == nil {
		<-ctx.Done()
		return nil
	}
	for wait, told := firstRetry, false; ; wait = min(2*wait, lastRetry) {
		heard, err := m.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if heard {
			wait, told = firstRetry, false
		}
		if !told { // once, and not again each minute on a machine that has no logind
			m.o.Logger.Info("shutdowns of this machine are not announced", "err", err)
			told = true
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// follow delays shutdowns and acts on announcements until the host is not heard any more. It reports
// whether it was heard at all.
func (m *Manager) follow(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	announcements, err := m.o.Host.Announcements(ctx)
	if err != nil {
		return false, err
	}
	defer func() { // nothing of the host runs on
		cancel()
		for range announcements {
		}
	}()
	atMost, release, err := m.o.Host.Delay(ctx)
	if err != nil {
		return false, err
	}
	defer func() { release() }()
	grace := m.graceWithin(atMost)
	var drained <-chan struct{} // nil: no shutdown, or it was let go on
	for {
		select {
		case begins, open := <-announcements:
			switch {
			case !open:
				return true, errLost
			case begins:
				drained = m.begin(grace)
			default:
				drained = nil
				m.Cancel()
				release() // if it was not: two locks would be one too many
				if _, release, err = m.o.Host.Delay(ctx); err != nil {
					release = func() {}
					return true, err
				}
			}
		case <-drained:
			drained = nil
			release()
		}
	}
}

// graceWithin is the configured grace, or what the host allows if that is less.
func (m *Manager) graceWithin(atMost time.Duration) time.Duration {
	// What is left is for the last statuses.
	allowed := max(atMost-settleTime, atMost/2)
	if m.o.Grace <= allowed {
		return m.o.Grace
	}
	m.o.Logger.Warn("pods get less time to end than configured; raise InhibitDelayMaxSec of logind",
		"configured", m.o.Grace, "allowed", allowed)
	return allowed
}
