package history

import (
	"cmp"
	"context"
	"iter"
	"slices"
)

// Watch returns the events after a sequence number, in order, until the context ends: first the
// stored ones, then new ones. 0 begins with all stored events. A record comes again when the API
// server has accepted its change.
//
// The events are pulled: a slow receiver delays no other, and it loses no event that the store
// still has when the receiver asks for more. If events are missing, because they were dropped to
// keep the bounds or lost in a crash, the first event is a reset and all stored events follow.
func (s *Store) Watch(ctx context.Context, since uint64) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			events, last, progress := s.after(since)
			for _, e := range events {
				if ctx.Err() != nil || !yield(e) {
					return
				}
			}
			since = last
			select {
			case <-ctx.Done():
				return
			case <-progress:
			}
		}
	}
}

// after returns the events after a sequence number, the number of the last change, and a channel
// that is closed when there are more.
func (s *Store) after(since uint64) (events []Event, last uint64, progress <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	if since != 0 && (since < s.forgotten || since > s.seq) {
		events, since = append(events, Event{Reset: true}), 0
	}
	first := len(events)
	for _, l := range s.logs {
		if l.changed <= since {
			continue
		}
		for i := range l.entries {
			if e := &l.entries[i]; e.changed > since {
				events = append(events, Event{Seq: e.changed, Pod: l.ref, Record: e.record()})
			}
		}
	}
	slices.SortFunc(events[first:], func(a, b Event) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(events) > 0 {
		events[len(events)-1].Seq = s.seq // the receiver has everything, also if the newest was dropped
	}
	return events, s.seq, s.progress
}
