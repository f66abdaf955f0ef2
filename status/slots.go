package status

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// reservedSlots are kept for withdrawals beyond the limit in use, so that one never waits
	// for a busy slot.
	reservedSlots = 4
	// slowFlights is how many slow turns may go on without a slot, if the limit is not more.
	// A few pods whose requests hang cost nothing; more than that is a slow server, which
	// must not get ever more requests.
	slowFlights = 48
)

// slots are the turns in progress. At no time are there more than the limit, the reserved
// slots, and either slowFlights or the limit once more.
type slots struct {
	byPod map[types.UID]*flight
	// flights has the turns that hold a slot, oldest first; those that have landed stay in
	// the list until they are the oldest.
	flights []*flight
	// busy counts the turns that hold a slot, reserved those that hold a reserved one, and
	// hanging those that hold none any more.
	busy, reserved, hanging int
}

// flight is a turn in progress.
type flight struct {
	since time.Time
	// among is how many turns held a slot when this one began, itself included.
	among    int
	reserved bool
	slow     bool
	landed   bool
}

func (s *slots) inFlight() int { return len(s.byPod) }

func (s *slots) hasSlot(limit int) bool { return s.busy < limit }

func (s *slots) hasReserved() bool { return s.reserved < reservedSlots }

// occupy notes that a turn begins: in a slot if there is one, else in a reserved one.
func (s *slots) occupy(uid types.UID, now time.Time, limit int) {
	f := &flight{since: now, reserved: !s.hasSlot(limit)}
	s.count(f, 1)
	f.among = s.busy + s.reserved
	s.byPod[uid] = f
	s.flights = append(s.flights, f)
}

// land notes that a turn has ended.
func (s *slots) land(uid types.UID) *flight {
	f := s.byPod[uid]
	delete(s.byPod, uid)
	f.landed = true
	s.count(f, -1)
	return f
}

// oldest returns the turn that has held its slot for longest, nil if there is none.
func (s *slots) oldest() *flight {
	for len(s.flights) > 0 && s.flights[0].landed {
		s.flights = s.flights[1:]
	}
	if len(s.flights) == 0 {
		return nil
	}
	return s.flights[0]
}

// maySlow reports whether a slow turn may go on without its slot.
func (s *slots) maySlow(limit int) bool { return s.hanging < max(limit, slowFlights) }

// free takes the slot from the oldest turn.
func (s *slots) free(f *flight) {
	s.count(f, -1)
	f.slow = true
	s.count(f, 1)
	s.flights = s.flights[1:]
}

func (s *slots) count(f *flight, n int) {
	switch {
	case f.slow:
		s.hanging += n
	case f.reserved:
		s.reserved += n
	default:
		s.busy += n
	}
}
