package status

import (
	"context"
	"errors"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
)

// EventType is what happened to a pod in the cache.
type EventType string

// The types of events.
const (
	Added   EventType = "added"
	Updated EventType = "updated"
	Removed EventType = "removed"
)

// Event is a change of the cache.
type Event struct {
	Type      EventType
	UID       types.UID
	Namespace string
	Name      string
	Version   uint64
	// Status is a copy of the receiver's own.
	Status v1.PodStatus
}

// ErrClosed: the subscription was closed.
var ErrClosed = errors.New("status: subscription closed")

// Subscribe returns a subscription that begins with what the cache holds, an Added event for each
// pod that has not finished, by name. What changes after that follows, without a gap and without an
// event that is part of the beginning already.
func (m *Manager) Subscribe() *Subscription { return m.cache.subscribe() }

// Subscription hands out the changes of the cache. The events of one pod come in order.
// A receiver that is slow delays no other: of the updates of a pod that pile up it gets the
// newest, so that what waits for it is bounded by the number of pods. One goroutine receives.
type Subscription struct {
	feed   *feed
	wake   chan struct{} // capacity 1: one wake-up stands for any number of events
	closed chan struct{}

	// mu guards the events that wait, in order of arrival, and where the last one of each pod is.
	mu     sync.Mutex
	events []queuedEvent
	first  uint64 // number of events[0], counted from the beginning
	last   map[types.UID]uint64
}

type queuedEvent struct {
	kind     EventType
	uid      types.UID
	snapshot *snapshot
}

// Next returns the next event, and waits for one. It ends with the context's error, or
// with ErrClosed.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok := s.pop(); ok {
			return Event{
				Type:      e.kind,
				UID:       e.uid,
				Namespace: e.snapshot.namespace,
				Name:      e.snapshot.name,
				Version:   e.snapshot.version,
				Status:    *e.snapshot.status.DeepCopy(),
			}, nil
		}
		select {
		case <-ctx.Done():
			return Event{}, ctx.Err()
		case <-s.closed:
			return Event{}, ErrClosed
		case <-s.wake:
		}
	}
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() { s.feed.unsubscribe(s) }

func (s *Subscription) pop() (queuedEvent, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) == 0 {
		return queuedEvent{}, false
	}
	e := s.events[0]
	if s.last[e.uid] == s.first {
		delete(s.last, e.uid)
	}
	s.events = s.events[1:]
	s.first++
	return e, true
}

func (s *Subscription) push(e queuedEvent) {
	s.mu.Lock()
	number, ok := s.last[e.uid]
	switch {
	case ok && e.kind == s.events[number-s.first].kind, // of two of a kind the newer one is enough
		ok && e.kind == Updated && s.events[number-s.first].kind == Added:
		s.events[number-s.first].snapshot = e.snapshot
	default:
		s.last[e.uid] = s.first + uint64(len(s.events))
		s.events = append(s.events, e)
	}
	s.mu.Unlock()
	wake.Up(s.wake)
}

// feed passes changes on to the subscriptions. The cache calls it under its lock, which
// is what keeps the events of a pod in order.
type feed struct {
	// mu guards subscriptions.
	mu            sync.Mutex
	subscriptions []*Subscription
}

func newFeed() *feed { return &feed{} }

// stored announces a new version; the end of a pod is announced as its removal (U13).
func (f *feed) stored(uid types.UID, s *snapshot, added bool) {
	kind := Updated
	switch {
	case s.finished:
		kind = Removed
	case added:
		kind = Added
	}
	f.publish(queuedEvent{kind: kind, uid: uid, snapshot: s})
}

func (f *feed) removed(uid types.UID, s *snapshot) {
	if !s.finished { // else it was announced when it finished
		f.publish(queuedEvent{kind: Removed, uid: uid, snapshot: s})
	}
}

func (f *feed) publish(e queuedEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.subscriptions {
		s.push(e)
	}
}

// subscribe begins a subscription with events for what is known already.
func (f *feed) subscribe(known []queuedEvent) *Subscription {
	s := &Subscription{
		feed:   f,
		wake:   make(chan struct{}, 1),
		closed: make(chan struct{}),
		events: known,
		last:   make(map[types.UID]uint64, len(known)),
	}
	for i := range known {
		s.last[known[i].uid] = uint64(i)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscriptions = append(f.subscriptions, s)
	return s
}

func (f *feed) unsubscribe(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.subscriptions, s); i >= 0 {
		f.subscriptions = slices.Delete(f.subscriptions, i, i+1)
		close(s.closed)
	}
}
