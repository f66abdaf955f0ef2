package status

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// reservedSlots are kept for withdrawals beyond the limit in use, so that one never waits
	// for a busy slot.
	reservedSlots = 4
	// slowTurns is how many slow turns may go on without a slot, if the limit is not more.
	// A few pods whose requests hang cost nothing; more than that is a slow server, which
	// must not get ever more requests.
	slowTurns = 48
	// manyHanging is how many turns without a slot are no coincidence.
	manyHanging = 8
)

// slots are the turns in progress. At no time are there more than the limit, the reserved
// slots, and either slowTurns or the limit once more.
type slots struct {
	byPod map[types.UID]*activeTurn
	// active has the turns with a slot, oldest first; ended turns stay in the list until they are
	// the oldest.
	active []*activeTurn
	// busy counts the turns with a slot, reserved the turns with a reserved slot, and hanging the
	// turns that have lost their slot.
	busy, reserved, hanging int
}

// activeTurn is a turn in progress.
type activeTurn struct {
	since time.Time
	// tried is when the server was last tried before this turn.
	tried time.Time
	// among is how many turns held a slot when this one began, itself included.
	among    int
	reserved bool
	slow     bool
	ended    bool
	share    *part // of the pod
}

func (s *slots) inFlight() int { return len(s.byPod) }

func (s *slots) hasSlot(limit int) bool { return s.busy < limit }

func (s *slots) hasReserved() bool { return s.reserved < reservedSlots }

// begin records that a turn begins: in a slot if there is one, else in a reserved one.
func (s *slots) begin(j *job, now time.Time, limit int) {
	f := &activeTurn{since: now, reserved: !s.hasSlot(limit), share: j.share}
	j.began()
	s.count(f, 1)
	f.among = s.busy + s.reserved
	s.byPod[j.uid] = f
	s.active = append(s.active, f)
}

// end records that a turn has ended.
func (s *slots) end(uid types.UID) *activeTurn {
	f := s.byPod[uid]
	delete(s.byPod, uid)
	f.ended = true
	s.count(f, -1)
	return f
}

// oldest returns the turn that has held its slot for longest, or nil.
func (s *slots) oldest() *activeTurn {
	for len(s.active) > 0 && s.active[0].ended {
		s.active = s.active[1:]
	}
	if len(s.active) == 0 {
		return nil
	}
	return s.active[0]
}

// maySlow reports whether a slow turn may go on without its slot.
func (s *slots) maySlow(limit int) bool { return s.hanging < max(limit, slowTurns) }

// free takes the slot from the oldest turn.
func (s *slots) free(f *activeTurn) {
	s.count(f, -1)
	f.slow = true
	f.share.lostSlot()
	s.count(f, 1)
	s.active = s.active[1:]
}

func (s *slots) count(f *activeTurn, n int) {
	switch {
	case f.slow:
		s.hanging += n
	case f.reserved:
		s.reserved += n
	default:
		s.busy += n
	}
}
