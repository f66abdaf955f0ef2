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
	// Status is a copy; the receiver may modify it.
	Status v1.PodStatus
}

// ErrClosed: the subscription was closed.
var ErrClosed = errors.New("status: subscription closed")

// Subscribe returns a subscription that begins with an Added event for each pod in the cache that
// has not finished, by name. Later changes follow, without gaps and without repeating the initial
// state.
func (m *Manager) Subscribe() *Subscription { return m.cache.subscribe() }

// Subscription delivers the changes of the cache. The events of one pod come in order. A slow
// receiver does not delay others: it gets the newest of the updates of a pod that pile up, and no
// event for a pod that came and went meanwhile. So the number of waiting events is bounded by the
// pods in the cache and the pods that the receiver has seen. One goroutine may receive.
type Subscription struct {
	feed   *feed
	wake   chan struct{} // capacity 1: one wake-up stands for any number of events
	closed chan struct{}

	// mu guards the fields below.
	mu sync.Mutex
	// waiting has what the receiver is to learn of each pod, in the order of the first event of each.
	waiting map[types.UID]*waitingEvents
	order   []types.UID
	empty   int // how many of them have nothing to learn any more
	// known are the pods that the receiver has learned of, and not of their removal.
	known map[types.UID]bool
}

// waitingEvents are what a receiver is to learn of a pod: its removal, and then what it is now.
type waitingEvents struct {
	removed *snapshot
	newest  *snapshot
	kind    EventType // of newest
}

func (w *waitingEvents) none() bool { return w.removed == nil && w.newest == nil }

type queuedEvent struct {
	kind     EventType
	uid      types.UID
	snapshot *snapshot
}

// Next waits for the next event and returns it. Next returns the context's error if the context
// ends, or ErrClosed.
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
	for len(s.order) > 0 {
		uid := s.order[0]
		w := s.waiting[uid]
		if removed := w.removed; removed != nil && w.newest != nil {
			w.removed = nil
			delete(s.known, uid)
			return queuedEvent{Removed, uid, removed}, true
		}
		s.order = s.order[1:]
		delete(s.waiting, uid)
		switch {
		case w.removed != nil:
			delete(s.known, uid)
			return queuedEvent{Removed, uid, w.removed}, true
		case w.newest != nil:
			s.known[uid] = true
			return queuedEvent{w.kind, uid, w.newest}, true
		}
		s.empty--
	}
	return queuedEvent{}, false
}

func (s *Subscription) push(e queuedEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.waiting[e.uid]
	if !ok {
		w = &waitingEvents{}
		s.waiting[e.uid] = w
		s.order = append(s.order, e.uid)
		s.empty++
	}
	if w.none() {
		s.empty--
	}
	switch {
	case e.kind != Removed && w.newest == nil:
		w.newest, w.kind = e.snapshot, e.kind
	case e.kind != Removed:
		w.newest = e.snapshot
	case s.known[e.uid]:
		w.removed, w.newest = e.snapshot, nil
	default:
		w.newest = nil
	}
	if w.none() {
		s.empty++
		s.compact()
	}
	wake.Up(s.wake)
}

// compact drops the pods without an event, once they are the majority of the waiting pods.
func (s *Subscription) compact() {
	if s.empty < 64 || s.empty < len(s.order)/2 {
		return
	}
	left := make([]types.UID, 0, len(s.order)-s.empty)
	for _, uid := range s.order {
		if s.waiting[uid].none() {
			delete(s.waiting, uid)
		} else {
			left = append(left, uid)
		}
	}
	s.order, s.empty = left, 0
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
		feed:    f,
		wake:    make(chan struct{}, 1),
		closed:  make(chan struct{}),
		waiting: make(map[types.UID]*waitingEvents, len(known)),
		known:   make(map[types.UID]bool),
	}
	for _, e := range known {
		s.push(e)
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
