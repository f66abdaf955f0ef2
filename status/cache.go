package status

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// cache holds the newest status of each pod, and the state of its delivery to the API server.
//
// A stored status is never changed, only replaced, so a pointer to it may be read
// without the lock for as long as needed.
type cache struct {
	standalone bool // nothing is ever sent
	feed       *feed
	observer   Observer
	owns       podrules.Ownership
	judges     bool // whether containers could run follows from the reports: there is no Safety
	jitter     func() float64

	// mu guards all fields below, and the order of the events of feed.
	mu      sync.Mutex
	entries map[types.UID]*entry
	// unsent holds the pods with a change that the API server has not accepted yet but could
	// accept.
	unsent map[types.UID]*entry
	// fights and mirrors have the data that few pods need: another writer, and an API object that
	// is not the pod itself, see target.
	fights  map[types.UID]fight
	mirrors map[types.UID]types.UID
	// decisions holds the pods whose status the API server has stored differently than sent.
	decisions map[types.UID]decision
	// unanswered holds the pods with a write that the API server has not answered and may carry out.
	unanswered map[types.UID]unanswered
	// behinds holds the pods whose base is newer than the watch's copy.
	behinds map[types.UID]behind
	// newest is the highest revision that the server had, of any pod or of its pods as a whole, at newestAt.
	newest   revision
	newestAt time.Time
	// epoch counts the detected restores of the server.
	epoch int
	// details bounds the writes of details that do not wait for company.
	details *budget
	// retired is the highest version ever removed. A pod starts above it, so that versions grow
	// even if a pod is removed and added again, at the cost of one number.
	retired uint64
	// stall is why nothing is sent, if so.
	stall stall
	// progress is closed and replaced when the API server has accepted something, or when a pod no
	// longer needs to be delivered.
	progress chan struct{}
}

// entry is a pod in the cache. There is an entry for each pod of the node, so entry is small: data
// that few pods have is in other maps.
type entry struct {
	*snapshot // the newest
	delivery
}

// snapshot is the reported status of a pod. Once stored, it is never changed.
type snapshot struct {
	namespace string
	name      string
	status    v1.PodStatus
	version   uint64 // grows by one with each stored change
	static    bool
	finished  bool
	// vanished: a container that was reported running is no longer reported at all.
	vanished bool
	// restored: an earlier process has reported the status.
	restored bool
	// delivered: the API server has the pod's end, or not the pod any more. Saved: the journal has the end. Only
	// these two and acceptedAt change.
	delivered, saved atomic.Bool
	// acceptedAt is when the API server accepted this version or the last accepted version before
	// it, in Unix nanoseconds, 0 without one. The lock of the cache guards it.
	acceptedAt int64
}

// final reports whether the pod has ended in this status, so that it must not be lost.
func (s *snapshot) final() bool {
	return s.finished || podstatus.IsTerminal(s.status.Phase)
}

func newCache(standalone bool, feed *feed, observer Observer, jitter func() float64) *cache {
	return &cache{
		standalone: standalone,
		feed:       feed,
		observer:   observer,
		jitter:     jitter,
		entries:    make(map[types.UID]*entry),
		unsent:     make(map[types.UID]*entry),
		fights:     make(map[types.UID]fight),
		mirrors:    make(map[types.UID]types.UID),
		behinds:    make(map[types.UID]behind),
		decisions:  make(map[types.UID]decision),
		details:    newDetailBudget(),
		unanswered: make(map[types.UID]unanswered),
		stall:      stall{reason: stallNotRunning},
		progress:   make(chan struct{}),
	}
}

// load returns the newest snapshot of a pod, or nil.
func (c *cache) load(uid types.UID) *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[uid]; ok {
		return e.snapshot
	}
	return nil
}

// swap stores the next snapshot of a pod and sets its version, if from, nil for the first, is still
// the newest. It also reports whether the pod was waiting for something that this report may bring.
// The status old and the kind of call are for the observer.
func (c *cache) swap(from, next *snapshot, pod *v1.Pod, old *v1.PodStatus, by string, now time.Time) (ok, awaited bool) {
	uid := pod.UID
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[uid]
	switch {
	case e == nil && from != nil, e != nil && e.snapshot != from:
		return false, false
	case e == nil:
		e = &entry{delivery: delivery{accepted: c.retired}}
		c.entries[uid] = e
		next.version = c.retired + 1
	default:
		next.version, next.acceptedAt = from.version+1, from.acceptedAt
	}
	e.snapshot = next
	c.markUnsent(uid, e, now)
	c.feed.stored(uid, next, from == nil && pod.DeletionTimestamp == nil)
	if from == nil {
		old = old.DeepCopy() // it may be the caller's
	}
	c.observer.Changed(podstatus.Change{
		UID: uid, Namespace: next.namespace, Name: next.name, Created: pod.CreationTimestamp.Time,
		Old: old, New: &next.status, First: from == nil, Version: next.version, At: now, By: by, Finished: next.finished,
	})
	// A pod that was found gone once is looked up once more after a report.
	return true, e.waitsFor().local() || e.waitsFor() == waitGone && e.backlog.attempts == 1
}

// restore puts back an end that an earlier process has reported. Whether the API server has it is found out by comparison.
func (c *cache) restore(uid types.UID, final podstatus.Final, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &entry{snapshot: &snapshot{
		namespace: final.Namespace,
		name:      final.Name,
		version:   max(final.Version, 1),
		finished:  final.Finished,
		vanished:  final.Vanished,
		restored:  true,
	}}
	e.accepted = e.version - 1
	e.saved.Store(true)
	final.Status.DeepCopyInto(&e.status)
	c.entries[uid] = e
	c.markUnsent(uid, e, now)
}

// restoredPods returns the pods whose newest status an earlier process has reported.
func (c *cache) restoredPods() []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var uids []types.UID
	for uid, e := range c.entries {
		if e.restored {
			uids = append(uids, uid)
		}
	}
	return uids
}

// endedAs reports whether the pod has ended in this snapshot with the same status as in the next snapshot. Conditions
// and resource claims of other writers in a report count too: they are kept in the cache, although they are not sent.
func (s *snapshot) endedAs(next *snapshot) bool {
	return s.final() && s.finished == next.finished && s.vanished == next.vanished && s.static == next.static &&
		equality.Semantic.DeepEqual(&s.status, &next.status)
}

// awaits reports whether a pod waits for something on this node that any report may bring, even a report
// that changes nothing; or must be read because its deletion is known but missing in the base.
func (c *cache) awaits(pod *v1.Pod, reads bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[pod.UID]
	return ok && (e.waitsFor().local() || reads && pod.DeletionTimestamp != nil && !e.base.ended)
}

// remove forgets a pod. It returns the newest snapshot, or nil, and reports whether the pod has
// outstanding work in the API, so that it may be queued.
func (c *cache) remove(uid types.UID) (was *snapshot, queued bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok {
		return nil, false
	}
	delete(c.entries, uid)
	delete(c.fights, uid)
	delete(c.mirrors, uid)
	delete(c.behinds, uid)
	delete(c.decisions, uid)
	delete(c.unanswered, uid)
	c.clearUnsent(uid)
	c.retired = max(c.retired, e.version)
	c.feed.removed(uid, e.snapshot)
	c.observer.Removed(uid, time.Now())
	return e.snapshot, e.backlog != nil
}

// unknown returns the cached pods for which keep returns false.
func (c *cache) unknown(keep func(types.UID) bool) []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var uids []types.UID
	for uid := range c.entries {
		if !keep(uid) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// unfinished returns the pods with outstanding work in the API.
func (c *cache) unfinished() []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var uids []types.UID
	for uid, e := range c.entries {
		if e.backlog != nil || e.pending() || e.finished {
			uids = append(uids, uid)
		}
	}
	return uids
}

// subscribe begins a subscription between two changes.
func (c *cache) subscribe() *Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	var known []queuedEvent
	for uid, e := range c.entries {
		if !e.finished { // else it was announced as removed
			known = append(known, queuedEvent{kind: Added, uid: uid, snapshot: e.snapshot})
		}
	}
	slices.SortFunc(known, func(a, b queuedEvent) int {
		return cmp.Or(compareNames(a.snapshot.namespace, a.snapshot.name, b.snapshot.namespace, b.snapshot.name), cmp.Compare(a.uid, b.uid))
	})
	return c.feed.subscribe(known)
}

func (c *cache) markUnsent(uid types.UID, e *entry, now time.Time) {
	if c.standalone {
		return
	}
	backlog := e.ensureBacklog()
	backlog.since, backlog.unbuiltSince = cmp.Or(backlog.since, now), cmp.Or(backlog.unbuiltSince, now)
	if e.waitsFor().deliverable() {
		c.unsent[uid] = e
	}
}

func (c *cache) clearUnsent(uid types.UID) {
	if _, ok := c.unsent[uid]; !ok {
		return
	}
	delete(c.unsent, uid)
	if len(c.unsent) == 0 {
		c.unsent = make(map[types.UID]*entry) // gives the memory of a burst back
	}
	c.progressed()
}

func (c *cache) progressed() {
	close(c.progress)
	c.progress = make(chan struct{})
}
