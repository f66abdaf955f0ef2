package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// life is whether the manager runs. At most one session goes on at a time.
type life struct {
	begun chan struct{} // closed when the first session begins
	// mu guards the fields below.
	mu      sync.Mutex
	session *session // nil: the manager does not run
	ran     bool
	shut    bool
}

// session is one Run, or the last delivery of Shutdown.
type session struct {
	first bool
	stop  context.CancelFunc
	done  chan struct{}
}

// begin begins a session, the last one after close. If one goes on, it returns that one with an error.
func (l *life) begin(stop context.CancelFunc, last bool) (*session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.shut && !last:
		return nil, ErrShutdown
	case l.session != nil:
		return l.session, errRunTwice
	}
	l.session = &session{first: !l.ran, stop: stop, done: make(chan struct{})}
	if !l.ran {
		l.ran = true
		close(l.begun)
	}
	return l.session, nil
}

func (l *life) end(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = nil
	close(s.done)
}

// current returns the session that goes on, nil if none does.
func (l *life) current() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// close keeps Run from beginning a session.
func (l *life) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
}

// Run delivers statuses until the context ends or [Manager.Shutdown] is called, and returns nil once
// all its goroutines have stopped. Nothing is sent before the node's pods were listed. Undelivered
// statuses stay in the cache: call Run again or Shutdown to deliver them. A concurrent second Run, and
// a Run after Shutdown ([ErrShutdown]), returns an error at once.
func (m *Manager) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := m.life.begin(stop, false)
	if err != nil {
		return err
	}
	m.serve(ctx, s)
	return nil
}

// serve is a session from its begin to its end.
func (m *Manager) serve(ctx context.Context, s *session) {
	defer m.life.end(s)
	m.metrics.join()
	defer m.metrics.leave()
	if m.opts.Client == nil {
		<-ctx.Done()
		return
	}
	m.cache.setStall(stall{reason: stallUnlisted})
	defer m.cache.setStall(stall{reason: stallNotRunning})
	if !m.initialList(ctx) {
		return
	}
	m.cache.setStall(stall{})
	if !s.first {
		m.resume()
	}
	var background sync.WaitGroup
	background.Go(func() { m.listOverdue(ctx) })
	if m.opts.Versions != nil {
		background.Go(func() { m.followHistory(ctx) })
	}
	m.engine.run(ctx)
	background.Wait()
	m.writes.drain()
}

// resume requests a turn for each pod that the queue of an earlier session may have held.
func (m *Manager) resume() {
	now := time.Now()
	for _, uid := range m.cache.unfinished() {
		m.engine.changed(turnRequest{uid: uid, urgency: normal, at: now, expedite: true})
	}
}

// startPatience is how long Flush waits for the first Run: a program calls it in a goroutine, which may
// not have begun.
const startPatience = 100 * time.Millisecond

// Flush waits until the API server has accepted everything that was stored before the call. Flush
// does not wait for pods that the API does not have, for static pods without a mirror pod, or for
// the terminal phase of a pod whose containers could still run: Safety is called once more, and if
// containers could still run, Flush waits for the rest of the status only. When a node agent stops,
// with its workers stopped already, no report would end that wait; the journal keeps the terminal
// status. If the context ends first, the error is a [*FlushError] that names the remaining pods.
//
// A status that the API server stores differently than sent is not delivered. Flush waits for the
// readiness and the phase of such pods; other fields are sent once more, and if the server changes
// them again, Flush returns the error at once.
//
// If [Manager.Run] is not running, Flush returns [ErrNotRunning] at once. Before exiting a program use
// [Manager.Shutdown], which delivers in either case.
func (m *Manager) Flush(ctx context.Context) error {
	select {
	case <-m.life.begun:
	case <-ctx.Done():
	case <-time.After(startPatience):
	}
	s := m.life.current()
	if s == nil {
		if err := m.cache.undelivered(m.cache.goals(), ErrNotRunning); err != nil {
			return err
		}
		return fmt.Errorf("status: flush: %w", ErrNotRunning)
	}
	return m.flush(ctx, s)
}

// flush waits for what is stored now while a session goes on.
func (m *Manager) flush(ctx context.Context, s *session) error {
	wanted := m.cache.goals()
	now := time.Now()
	for uid, want := range wanted {
		if want.withheld {
			m.engine.changed(turnRequest{uid: uid, urgency: withdrawal, at: now, expedite: true})
		}
	}
	for _, uid := range m.cache.sendDetails(wanted) {
		m.engine.changed(turnRequest{uid: uid, urgency: normal, at: now, expedite: true})
	}
	overruled := m.cache.questionAll(now)
	m.retryOverruled(maps.Keys(overruled), now)
	// One pod after the other, so that each delivery costs one look and not one at all pods.
	for uid, want := range wanted {
		for {
			delivered, progress := m.cache.delivered(uid, want)
			if delivered {
				break
			}
			select {
			case <-ctx.Done():
				return m.cache.undelivered(wanted, ctx.Err())
			case <-s.done:
				return m.cache.undelivered(wanted, ErrNotRunning)
			case <-progress:
			}
		}
	}
	return m.flushOverruled(ctx, s, overruled)
}

// Shutdown delivers the reports before the call, as [Manager.Flush] does, then ends [Manager.Run] and waits
// for its return. If Run was never called or has ended already, for example because a signal canceled its
// context, Shutdown delivers by itself. If the context ends first, Run ends anyway, and the error is a
// [*FlushError] that names the remaining pods. Reports after Shutdown are stored and not sent.
func (m *Manager) Shutdown(ctx context.Context) error {
	m.life.close()
	for {
		s := m.life.current()
		if s == nil && m.cache.countUnsent() == 0 {
			return nil
		}
		if s == nil {
			s = m.deliverLast(ctx)
		}
		err := m.flush(ctx, s)
		if errors.Is(err, ErrNotRunning) {
			continue // Run has ended during the flush
		}
		s.stop()
		select {
		case <-s.done:
		case <-ctx.Done():
		}
		return err
	}
}

// deliverLast begins a session for Shutdown, or returns the session of a concurrent Shutdown.
func (m *Manager) deliverLast(ctx context.Context) *session {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s, err := m.life.begin(stop, true)
	if err != nil {
		stop()
		return s
	}
	go m.serve(ctx, s)
	return s
}
