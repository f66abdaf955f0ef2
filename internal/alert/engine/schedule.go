package engine

import (
	"container/heap"
	"time"
)

// schedule is a heap of the subjects that time alone can change, the earliest first.
type schedule struct{ items []*subject }

// set says when a subject is to be looked at; zero: not at all.
func (s *schedule) set(sub *subject, at time.Time) {
	queued := sub.place > 0
	sub.look = at
	switch {
	case at.IsZero() && queued:
		heap.Remove(s, sub.place-1)
	case at.IsZero():
	case queued:
		heap.Fix(s, sub.place-1)
	default:
		heap.Push(s, sub)
	}
}

// next is when the first subject is due, zero if none is.
func (s *schedule) next() time.Time {
	if len(s.items) == 0 {
		return time.Time{}
	}
	return s.items[0].look
}

// Len, Less, Swap, Push and Pop implement [heap.Interface]. The place of a subject is its index plus one.
func (s *schedule) Len() int { return len(s.items) }

func (s *schedule) Less(i, j int) bool { return s.items[i].look.Before(s.items[j].look) }

func (s *schedule) Swap(i, j int) {
	s.items[i], s.items[j] = s.items[j], s.items[i]
	s.items[i].place, s.items[j].place = i+1, j+1
}

func (s *schedule) Push(x any) {
	sub := x.(*subject)
	s.items = append(s.items, sub)
	sub.place = len(s.items)
}

func (s *schedule) Pop() any {
	last := len(s.items) - 1
	sub := s.items[last]
	s.items[last] = nil
	s.items = s.items[:last]
	sub.place = 0
	return sub
}
