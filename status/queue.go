package status

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// queue decides which pod is served next. It is a plain value without clock, lock or
// goroutine: one goroutine owns it and passes the time in.
//
// A pod is in one of four states:
//
//	idle      not in the queue
//	queued    in ready (ordered by deadline) or in waiting (ordered by the time of its next try)
//	in flight taken, and not yet done
//	dirty     in flight, and asked for again meanwhile: queued anew when done
type queue struct {
	jobs    map[types.UID]*job
	ready   jobHeap
	waiting jobHeap
	// asked counts the calls of add: the tie-break between equal times, first come first served.
	asked uint64
}

// job is a pod that is queued or in flight.
type job struct {
	uid      types.UID
	urgency  urgency
	deadline time.Time
	asked    uint64
	// notBefore holds the pod back until then: its backoff.
	notBefore time.Time
	inFlight  bool
	dirty     bool
	// expedited: there was news during the flight that makes a backoff pointless.
	expedited bool
	// index is the position in the heap that holds the job, -1 while it is in none.
	index int
	heap  *jobHeap
}

func newQueue() *queue {
	return &queue{
		jobs:    make(map[types.UID]*job),
		ready:   jobHeap{key: func(j *job) time.Time { return j.deadline }},
		waiting: jobHeap{key: func(j *job) time.Time { return j.notBefore }},
	}
}

// add asks for a pod to be served. A pod that is queued already keeps the earlier of its
// deadlines, and one that backs off goes on backing off.
func (q *queue) add(uid types.UID, u urgency, changed time.Time) {
	q.asked++
	deadline := changed.Add(u.slack())
	j, ok := q.jobs[uid]
	switch {
	case !ok:
		j = &job{uid: uid, urgency: u, deadline: deadline, asked: q.asked, index: -1}
		q.jobs[uid] = j
		q.push(&q.ready, j)
		return
	case j.inFlight && !j.dirty: // what was asked for before is being served
		j.dirty, j.urgency, j.deadline, j.asked = true, u, deadline, q.asked
		return
	}
	j.urgency = min(j.urgency, u)
	if deadline.Before(j.deadline) {
		j.deadline = deadline
		if j.heap == &q.ready {
			heap.Fix(&q.ready, j.index)
		}
	}
}

// expedite is add for a pod about which there is news that makes its backoff pointless.
func (q *queue) expedite(uid types.UID, u urgency, changed time.Time) {
	q.add(uid, u, changed)
	j := q.jobs[uid]
	j.expedited = j.inFlight
	if j.heap == &q.waiting {
		j.notBefore = time.Time{}
		heap.Remove(&q.waiting, j.index)
		q.push(&q.ready, j)
	}
}

// take hands out the most urgent pod that need not wait. While background work is held
// back, such pods are passed over until then.
func (q *queue) take(now, backgroundFrom time.Time) (types.UID, bool) {
	q.promote(now)
	for q.ready.Len() > 0 {
		j := q.ready.jobs[0]
		heap.Pop(&q.ready)
		if j.urgency == background && now.Before(backgroundFrom) {
			j.notBefore = backgroundFrom
			q.push(&q.waiting, j)
			continue
		}
		j.inFlight, j.expedited, j.notBefore = true, false, time.Time{}
		return j.uid, true
	}
	return "", false
}

// done ends what take began. The pod becomes idle, or is queued again if it was asked for
// meanwhile.
func (q *queue) done(uid types.UID) {
	j := q.jobs[uid]
	if !j.dirty {
		q.drop(uid)
		return
	}
	j.inFlight, j.dirty = false, false
	q.push(&q.ready, j)
}

// drop makes a pod idle. An empty queue gives back what it grew to in a burst.
func (q *queue) drop(uid types.UID) {
	delete(q.jobs, uid)
	if len(q.jobs) == 0 && cap(q.ready.jobs) > burst {
		q.jobs = make(map[types.UID]*job)
		q.ready.jobs, q.waiting.jobs = nil, nil
	}
}

// retry ends what take began without success: the pod is tried again at the given time.
func (q *queue) retry(uid types.UID, u urgency, at time.Time) {
	j := q.jobs[uid]
	if j.dirty {
		u = min(u, j.urgency)
	}
	if j.expedited {
		q.done(uid)
		return
	}
	j.inFlight, j.dirty, j.urgency, j.notBefore = false, false, u, at
	j.deadline = at.Add(u.slack())
	q.push(&q.waiting, j)
}

// promote moves the pods whose wait is over to where they can be taken.
func (q *queue) promote(now time.Time) {
	for q.waiting.Len() > 0 && !q.waiting.jobs[0].notBefore.After(now) {
		j := q.waiting.jobs[0]
		heap.Pop(&q.waiting)
		q.push(&q.ready, j)
	}
}

// next tells when there will be something to take: zero if nothing is queued.
func (q *queue) next(now time.Time) time.Time {
	switch {
	case q.ready.Len() > 0:
		return now
	case q.waiting.Len() > 0:
		return q.waiting.jobs[0].notBefore
	default:
		return time.Time{}
	}
}

func (q *queue) push(h *jobHeap, j *job) {
	j.heap = h
	heap.Push(h, j)
}

// jobHeap is a container/heap of jobs that know their position.
type jobHeap struct {
	jobs []*job
	key  func(*job) time.Time
}

func (h *jobHeap) Len() int { return len(h.jobs) }

func (h *jobHeap) Less(i, k int) bool {
	a, b := h.jobs[i], h.jobs[k]
	if c := h.key(a).Compare(h.key(b)); c != 0 {
		return c < 0
	}
	return a.asked < b.asked
}

func (h *jobHeap) Swap(i, k int) {
	h.jobs[i], h.jobs[k] = h.jobs[k], h.jobs[i]
	h.jobs[i].index, h.jobs[k].index = i, k
}

func (h *jobHeap) Push(x any) {
	j := x.(*job)
	j.index = len(h.jobs)
	h.jobs = append(h.jobs, j)
}

func (h *jobHeap) Pop() any {
	last := len(h.jobs) - 1
	j := h.jobs[last]
	h.jobs[last] = nil
	h.jobs = h.jobs[:last]
	j.index, j.heap = -1, nil
	return j
}
