package history

import (
	"cmp"
	"context"
	"iter"
	"slices"
)

// Watch returns what happens after a sequence number, in order, without an end until the context
// ends: first what the store has of it, then what comes. 0 begins with all that the store has. A
// record comes again when the API server has taken it.
//
// The events are pulled: a slow receiver delays no other, and it loses nothing that the store still
// has when it asks for more. If something is missing, because it was dropped to keep the bounds or
// lost in a crash, the first event is a reset and all that is there follows.
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
