package status

import (
	"k8s.io/apimachinery/pkg/types"
)

// part is a part of the pods of a manager, see [Options.Share]. The owner of the queue alone touches it.
//
// Within a class the shares have their turns one after the other: a pod that becomes ready is numbered after the last one of
// its share, and the lowest number goes first (start-time fair queuing). A share that has had no work begins at the number that is being
// served, so that it neither waits for the others nor makes up for the time without work.
type part struct {
	// next is the number of the next pod of the share that becomes ready, by class.
	next [background + 1]uint64
	// jobs counts the pods of the share in the queue; without any it is forgotten.
	jobs int
	// inFlight counts the turns in progress, and slow those of them that have lost their slot.
	inFlight, slow int
	// hung: a turn has lost its slot, and none has succeeded since.
	hung bool
	// parked are ready pods that are not served while the share has too many turns in progress, by the class that they were parked in.
	parked [background + 1][]*job
}

// slowPerShare is how many turns of one share may hang before its other pods wait.
const slowPerShare = slowTurns / 8

// full reports whether the share may begin no further turn: requests of it hang, or it holds so many of the allowed slots that
// pods of other shares would have to wait for it.
func (s *part) full(allowed int) bool {
	most := max(1, allowed-max(1, allowed/4))
	if s.hung {
		most = 1
	}
	return s.slow >= slowPerShare || s.inFlight-s.slow >= most
}

// lostSlot notes that a turn of the share takes so long that it goes on without a slot.
func (s *part) lostSlot() {
	if s != nil {
		s.slow++
		s.hung = true
	}
}

// shares are the shares that have pods in the queue.
type shares struct {
	of    func(types.UID) string // nil: there is one share
	named map[string]*part
	// serving is the number of the pod that was taken last, by class.
	serving [background + 1]uint64
}

// shareBy makes the pods of the queue belong to shares; nil: there is one.
func (q *queue) shareBy(of func(types.UID) string) {
	q.shares.of, q.shares.named = of, make(map[string]*part)
	for u := range q.ready {
		q.ready[u].shared = of != nil
	}
}

// join finds the share of a pod that comes into the queue.
func (q *queue) join(j *job) {
	if q.shares.of == nil {
		return
	}
	j.shareName = q.shares.of(j.uid)
	if j.share = q.shares.named[j.shareName]; j.share == nil {
		j.share = &part{}
		q.shares.named[j.shareName] = j.share
	}
	j.share.jobs++
}

// leave undoes join.
func (q *queue) leave(j *job) {
	if j.share == nil {
		return
	}
	if j.share.jobs--; j.share.jobs == 0 {
		delete(q.shares.named, j.shareName)
	}
}

// number gives a pod that becomes ready its place among those of its class. A pod that is ready in the class already keeps it.
func (q *queue) number(j *job) {
	if s := j.share; s != nil && j.heap != &q.ready[j.urgency] {
		j.place = max(s.next[j.urgency], q.shares.serving[j.urgency])
		s.next[j.urgency] = j.place + 1
	}
}

// park takes the pods out of the way whose share may begin no further turn, so that the first of each class is one that may. Until
// a turn of the share ends they are in no heap.
func (q *queue) park(allowed int) {
	if q.shares.of == nil {
		return
	}
	for u := range q.ready {
		for h := &q.ready[u]; h.Len() > 0 && h.jobs[0].share.full(allowed); {
			j := h.jobs[0]
			q.remove(j)
			j.share.parked[u] = append(j.share.parked[u], j)
		}
	}
}

// began counts a turn in progress for the share of a pod.
func (j *job) began() {
	if j.share != nil {
		j.share.inFlight++
	}
}

// unparked is how many parked pods of a class become ready when a turn of their share ends: more than one, so that the share can use
// a limit that has grown.
const unparked = 2

// ended counts a turn of a share that has ended, and lets parked pods go on: all of them if there is no other turn to wait for.
func (q *queue) ended(s *part, slow, succeeded bool) {
	if s == nil {
		return
	}
	s.inFlight--
	if slow {
		s.slow--
	} else if succeeded {
		s.hung = false
	}
	for u := range s.parked {
		n := min(unparked, len(s.parked[u]))
		if s.inFlight == 0 {
			n = len(s.parked[u])
		}
		for _, j := range s.parked[u][:n] {
			if j.urgency != urgency(u) { // there was more urgent news meanwhile
				q.makeReady(j)
			} else {
				q.move(j, &q.ready[u]) // in its former place
			}
		}
		if s.parked[u] = s.parked[u][n:]; len(s.parked[u]) == 0 {
			s.parked[u] = nil
		}
	}
}

// served notes which pod of a class was taken.
func (q *queue) served(j *job) {
	if j.share != nil {
		q.shares.serving[j.urgency] = max(q.shares.serving[j.urgency], j.place)
	}
}

// shareOf names the share of a pod.
func (m *Manager) shareOf() func(types.UID) string {
	if m.opts.Share == nil {
		return nil
	}
	return func(uid types.UID) string {
		if pod, known := m.opts.Pods.ByUID(uid); known {
			return m.opts.Share(pod)
		}
		return ""
	}
}
