package status

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/instant"
)

// queue decides which pod is served next. It is a plain value without clock, lock or
// goroutine: one goroutine owns it and passes the time in.
//
// A pod is in one of four states:
//
//	idle      not in the queue
//	queued    ready (by class, then by how long it waits) or waiting (by the time of its next try)
//	in flight taken, and not yet done
//	dirty     in flight, and asked for again meanwhile: queued again when done
//
// A more urgent class goes first, but of each [share] turns of a class one goes to the classes
// below it if they have work. So with k pods of its own class ahead of it, a ready pod is
// served, at the latest, in this turn from now:
//
//	withdrawal  4(k+1)/3, rounded up
//	start       4 times that
//	normal      16 times that
//	background  64(k+1)
type queue struct {
	jobs    map[types.UID]*job
	ready   [background + 1]jobHeap
	waiting jobHeap
	// passed counts, for each class, its turns in a row while a class below it had work.
	passed [background + 1]int
	// backgroundFrom is when background work may start.
	backgroundFrom time.Time
	// pausedUntil is the end of a pause that the server asked for. Until then, pods for which the server asked
	// for a pause, or whose deletion it has denied, are not made ready, so that the pause is probed with other
	// pods.
	pausedUntil time.Time
	// asked counts the calls of add: the tie-break between equal times, first come first served.
	asked  uint64
	shares shares
}

// share is the number of turns of which one goes to the classes below: they get a quarter of the
// turns.
const share = 4

// job is a pod that is queued or in flight.
type job struct {
	uid     types.UID
	urgency urgency
	// since is when the oldest change that waits was made, or when its back-off ended.
	since time.Time
	asked uint64
	// notBefore is the end of the pod's back-off, tried when it began, and server:
	// that the server is the reason for it, and not the pod.
	notBefore time.Time
	tried     time.Time
	server    bool
	// refused: the server has refused the request that it was tried with, and renewed: there was
	// another status to send during the turn.
	refused bool
	renewed bool
	// hurried: there was a report during the turn that a server which is back would be sent at once.
	hurried bool
	// suspect: the last failure may be the pod's or the server's. Throttled is when the server asked for a
	// pause with regard to this pod, zero if that was not its last answer.
	suspect   bool
	throttled time.Time
	// grave: readiness or phase in the API differ from the node's.
	grave bool
	// lastingSince is since when the server has failed with this pod alone, or found it too large, or zero.
	lastingSince time.Time
	// deletes: only the deletion of the pod is outstanding. Neither observations nor idle capacity
	// make the deletion be tried more often: a webhook may deny it for long.
	deletes bool
	// released is when the back-off was last cut short because the server was back. Postponed: the back-off is over, and the
	// pod waits for the end of a pause that the server asked for.
	released  time.Time
	postponed bool
	inFlight  bool
	dirty     bool
	// expedited: an observation or report during the turn makes a back-off pointless.
	expedited bool
	// index is the position in the heap that holds the job, -1 while it is in none.
	index int
	heap  *jobHeap
	// share is the pod's share, nil if there is only one share, and place the pod's number in it.
	share     *part
	shareName string
	place     uint64
}

func newQueue() *queue {
	q := &queue{
		jobs:    make(map[types.UID]*job),
		waiting: jobHeap{key: func(j *job) time.Time { return j.notBefore }},
	}
	for u := range q.ready {
		q.ready[u].key = func(j *job) time.Time { return j.since }
	}
	return q
}

// add queues a pod. A pod that is queued already keeps the more urgent of its classes and the
// earlier of its times, and a pod in back-off stays in back-off.
func (q *queue) add(uid types.UID, u urgency, changed time.Time) {
	q.asked++
	j, ok := q.jobs[uid]
	switch {
	case !ok:
		j = &job{uid: uid, urgency: u, since: changed, asked: q.asked, index: -1}
		q.jobs[uid] = j
		q.join(j)
		q.makeReady(j)
		return
	case j.inFlight && !j.dirty: // what was asked for before is being served
		j.dirty, j.urgency, j.since, j.asked = true, u, changed, q.asked
		return
	}
	raised := u < j.urgency
	j.urgency = min(j.urgency, u)
	if changed.Before(j.since) {
		j.since, raised = changed, true
	}
	if raised && j.heap != nil && j.heap != &q.waiting {
		q.makeReady(j)
	}
}

// expedite is add for a pod whose back-off has become pointless.
func (q *queue) expedite(uid types.UID, u urgency, changed time.Time) {
	q.add(uid, u, changed)
	j := q.jobs[uid]
	j.expedited = j.inFlight
	if j.heap == &q.waiting {
		q.makeReady(j)
	}
}

// hurry shortens the back-off of a pod that waits for an unavailable server which may be back: the
// pod is tried again at the given time at the latest, but not within a second of its last attempt.
// Pods for which the server asked for a pause are not hurried.
func (q *queue) hurry(uid types.UID, at time.Time) {
	j := q.jobs[uid]
	j.hurried = j.inFlight
	if at = instant.Later(at, j.tried.Add(time.Second)); j.heap == &q.waiting && j.server && !j.deletes && j.throttled.IsZero() && at.Before(j.notBefore) {
		q.waitUntil(j, at)
	}
}

// serving reports whether the pod has its turn.
func (q *queue) serving(uid types.UID) bool {
	j, ok := q.jobs[uid]
	return ok && j.inFlight
}

// blameServer marks the pods whose last failure may be the server's fault as waiting for the
// server.
func (q *queue) blameServer() {
	for _, j := range q.waiting.jobs {
		j.server = j.server || j.suspect
	}
}

// renew shortens the back-off of a pod whose request was refused, because a newer status may be
// accepted: the pod is tried at once, but not within a second of its last attempt.
func (q *queue) renew(uid types.UID, now time.Time) {
	j := q.jobs[uid]
	j.renewed = j.inFlight
	if at := instant.Later(now, j.tried.Add(time.Second)); j.heap == &q.waiting && j.refused && !j.deletes && at.Before(j.notBefore) {
		q.waitUntil(j, at)
	}
}

// waitUntil ends a back-off at another time.
func (q *queue) waitUntil(j *job, at time.Time) {
	j.notBefore, j.since = at, at
	heap.Fix(&q.waiting, j.index)
}

// release ends the back-off of the pods that wait for the server, the most urgent first, spread over a
// time. A pod is released once within the longest back-off, or within graveWait, so that a pod that fails
// by its own fault gains only one attempt.
func (q *queue) release(now time.Time, over time.Duration) {
	var freed []*job
	for _, j := range q.waiting.jobs {
		if j.postponed || j.server && (j.hurts() || j.released.IsZero() || now.Sub(j.released) >= retryBackoff.Limit) {
			freed = append(freed, j)
		}
	}
	slices.SortFunc(freed, compareUrgency)
	for i, j := range freed {
		at := now.Add(over * time.Duration(i) / time.Duration(len(freed)))
		if j.hurts() && !j.released.IsZero() {
			at = instant.Later(at, j.released.Add(graveWait))
		}
		if at.Before(j.notBefore) {
			q.waitUntil(j, at)
		}
		j.released = instant.Later(now, at)
	}
}

// hasten makes one of the pods that wait for the server ready, as a probe: the pod whose last attempt is the longest
// ago. A pod that failed as a probe, maybe by its own fault, is not the next probe, however urgent it is.
func (q *queue) hasten(now time.Time) {
	var first *job
	for _, j := range q.waiting.jobs {
		if j.server && !j.deletes && (first == nil || compareProbes(j, first) < 0) {
			first = j
		}
	}
	if first != nil {
		first.since = now
		q.makeReady(first)
	}
}

// hurts reports whether the pod is released earlier: its readiness or phase in the API is wrong, and the server has
// not asked for a pause for this pod.
func (j *job) hurts() bool { return j.grave && j.throttled.IsZero() }

// compareUrgency orders pods that wait: by class, then by the end of their back-off.
func compareUrgency(a, b *job) int {
	return cmp.Or(cmp.Compare(a.urgency, b.urgency), a.notBefore.Compare(b.notBefore), cmp.Compare(a.asked, b.asked))
}

// compareProbes orders pods that may be probes: by their last try, then by class.
func compareProbes(a, b *job) int {
	return cmp.Or(a.tried.Compare(b.tried), cmp.Compare(a.urgency, b.urgency), cmp.Compare(a.asked, b.asked))
}

// turn returns the class that is served next. Overdue means that the class goes before withdrawals,
// since the lower classes have waited for their share.
func (q *queue) turn(now time.Time) (u urgency, overdue, ok bool) {
	q.promote(now)
	for u := withdrawal; u <= background; u++ {
		if !q.has(u, now) {
			continue
		}
		if q.passed[u] >= share-1 && q.hasBelow(u, now) {
			overdue = overdue || u == withdrawal
			continue
		}
		return u, overdue, true
	}
	return 0, false, false
}

// has reports whether there is a pod of the class to take.
func (q *queue) has(u urgency, now time.Time) bool {
	return q.ready[u].Len() > 0 && (u != background || !now.Before(q.backgroundFrom))
}

func (q *queue) hasBelow(u urgency, now time.Time) bool {
	for below := u + 1; below <= background; below++ {
		if q.has(below, now) {
			return true
		}
	}
	return false
}

// take returns the pod of the class that has waited longest. The class must not be empty.
func (q *queue) take(u urgency, now time.Time) *job { return q.takeAt(u, 0, now) }

// takeNewest returns the newest pod of the class. In a pause that the server asked for, pods queued together with the refused
// pods are likely to be refused as well: as probes they would delay all others.
func (q *queue) takeNewest(u urgency, now time.Time) *job {
	newest := 0
	for i, j := range q.ready[u].jobs {
		if q.ready[u].jobs[newest].asked < j.asked {
			newest = i
		}
	}
	return q.takeAt(u, newest, now)
}

func (q *queue) takeAt(u urgency, index int, now time.Time) *job {
	for above := withdrawal; above < u; above++ {
		q.passed[above] = 0
	}
	j := q.ready[u].jobs[index]
	q.remove(j)
	q.served(j)
	if j.released.After(now) { // it is tried before it would have been released
		j.released = now
	}
	j.inFlight, j.expedited, j.server, j.refused, j.renewed, j.hurried = true, false, false, false, false, false
	q.passed[u]++
	if !q.hasBelow(u, now) {
		q.passed[u] = 0
	}
	return j
}

// done ends a turn begun by take. The pod becomes idle, or is queued again if it was added
// meanwhile.
func (q *queue) done(uid types.UID) {
	j := q.jobs[uid]
	if !j.dirty {
		q.drop(uid)
		return
	}
	j.inFlight, j.dirty = false, false
	q.makeReady(j)
}

// drop makes a pod idle. An empty queue gives back what it grew to in a burst.
func (q *queue) drop(uid types.UID) {
	q.leave(q.jobs[uid])
	delete(q.jobs, uid)
	if len(q.jobs) > 0 {
		return
	}
	grown := cap(q.waiting.jobs) > burst
	for u := range q.ready {
		grown = grown || cap(q.ready[u].jobs) > burst
	}
	if grown {
		*q = queue{jobs: make(map[types.UID]*job), ready: q.ready, waiting: q.waiting, backgroundFrom: q.backgroundFrom, pausedUntil: q.pausedUntil, asked: q.asked, shares: q.shares}
		q.waiting.jobs = nil
		for u := range q.ready {
			q.ready[u].jobs = nil
		}
	}
}

// retry ends a failed turn begun by take: the pod is tried again at the given time. If the server
// and not the pod is the cause, the server's recovery shortens the wait.
func (q *queue) retry(uid types.UID, u urgency, now, at time.Time, server bool) {
	j := q.jobs[uid]
	if j.dirty {
		u = min(u, j.urgency)
	}
	if j.expedited {
		q.done(uid)
		return
	}
	j.inFlight, j.dirty, j.urgency = false, false, u
	j.notBefore, j.since, j.tried, j.server = at, at, now, server
	q.move(j, &q.waiting)
}

// promote makes the pods ready whose wait is over.
func (q *queue) promote(now time.Time) {
	for q.waiting.Len() > 0 && !q.waiting.jobs[0].notBefore.After(now) {
		if j := q.waiting.jobs[0]; (!j.throttled.IsZero() || j.deletes) && now.Before(q.pausedUntil) {
			j.postponed = true
			q.waitUntil(j, q.pausedUntil)
		} else {
			q.makeReady(j)
		}
	}
}

// next returns when the next pod can be taken; zero if no pod is queued.
func (q *queue) next(now time.Time) time.Time {
	if q.has(withdrawal, now) || q.hasBelow(withdrawal, now) {
		return now
	}
	var at time.Time
	if q.ready[background].Len() > 0 {
		at = q.backgroundFrom
	}
	if q.waiting.Len() > 0 {
		at = instant.Earlier(at, q.waiting.jobs[0].notBefore)
	}
	return at
}

func (q *queue) makeReady(j *job) {
	j.notBefore, j.postponed = time.Time{}, false
	q.number(j)
	q.move(j, &q.ready[j.urgency])
}

// move moves a job from its heap to another heap.
func (q *queue) move(j *job, to *jobHeap) {
	q.remove(j)
	j.heap = to
	heap.Push(to, j)
}

// remove takes a job out of the heap that it is in.
func (q *queue) remove(j *job) {
	if j.heap != nil {
		heap.Remove(j.heap, j.index)
	}
}

// jobHeap is a container/heap of jobs that know their position.
type jobHeap struct {
	jobs []*job
	key  func(*job) time.Time
	// shared: the places of the jobs in their shares count first.
	shared bool
}

func (h *jobHeap) Len() int { return len(h.jobs) }

func (h *jobHeap) Less(i, k int) bool {
	a, b := h.jobs[i], h.jobs[k]
	if h.shared && a.place != b.place {
		return a.place < b.place
	}
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
