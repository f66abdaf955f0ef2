package status

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// journalPatience is how long the end of Run waits for the disk. A write to a disk that hangs cannot be
	// canceled: it goes on, and so do those behind it.
	journalPatience = 5 * time.Second
	// diskPatience is how long a call waits for a disk that completes no write.
	diskPatience = 10 * time.Second
	// diskSlow is how long a write may take before Pending names the pod, if nothing else is to be done for it.
	diskSlow = time.Second
)

// errDiskHangs is the error of a write that the disk has not done in time.
var errDiskHangs = errors.New("the disk of the journal does not respond; the write goes on")

// stallJournal is the reason of what waits for the disk.
const stallJournal = "the journal is not written yet: the disk is slow or does not respond"

// writes makes the writes to the journal. Each pod that has some is served by a goroutine of its own, which
// ends with the last one: the writes of a pod are made in order, one at a time, and writes of different
// pods at once, so that the journal commits them together. No turn, lock or watch waits for the disk. A call that
// promises durability waits for its own write alone.
type writes struct {
	// mu guards everything below. It is never held while the journal is written.
	mu   sync.Mutex
	pods map[types.UID]*podWrites
	// progressed is when a write was last done, or when the oldest of those under way was begun.
	progressed time.Time
	// retentions are under way or wait.
	retentions map[*retention]bool
	// failed are the writes that failed and are to be made again, by pod. At retryAt one of them is: if it succeeds, so
	// may the others.
	failed  map[types.UID]*write
	retryAt time.Time
	probe   *write
	// idle is closed when no write is left; nil if no caller waits for that.
	idle chan struct{}
}

// podWrites are the writes of a pod that are not done. The first one is under way.
type podWrites struct {
	since           time.Time
	namespace, name string // of a pod that is forgotten
	queue           []*write
}

type write struct {
	kind    writeKind
	perform func() error
	// done is closed when the write was made or is not needed any more; err is the result.
	done    chan struct{}
	settled bool
	err     error
	retains *retention
}

// writeKind: of two writes of the same kind in a row that are not begun the later one is enough.
type writeKind uint8

const (
	writeOther writeKind = iota // each of them counts
	writeFinal
	writeForgetEnds
	writeRemove // and all writes before it that are not begun are not needed
	writeRetain
)

// retention is a write that removes the pods which are not to be kept: those with a later write are.
type retention struct{ touched map[types.UID]bool }

// add has a write made after those of the same pod that are there.
func (w *writes) add(uid types.UID, kind writeKind, perform func() error) *write {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addLocked(uid, kind, perform)
}

func (w *writes) addLocked(uid types.UID, kind writeKind, perform func() error) *write {
	for r := range w.retentions {
		r.touched[uid] = true
	}
	if failed := w.failed[uid]; failed != nil && failed.outdatedBy(kind) {
		delete(w.failed, uid)
		delete(w.retentions, failed.retains)
	}
	p := w.pods[uid]
	if p == nil {
		return w.begin(uid, kind, perform)
	}
	if kind == writeRemove {
		p.drop()
	}
	next := &write{kind: kind, perform: perform, done: make(chan struct{})}
	last := len(p.queue) - 1
	switch {
	case kind == writeOther || last <= 0 || p.queue[last].kind != kind:
		p.queue = append(p.queue, next)
	case p.queue[last].settled: // no call waits for it
		p.queue[last] = next
	default:
		next = p.queue[last]
		next.perform = perform
	}
	return next
}

// begin begins the first write of a pod.
func (w *writes) begin(uid types.UID, kind writeKind, perform func() error) *write {
	now := time.Now()
	if len(w.pods) == 0 {
		w.progressed = now
		w.pods = make(map[types.UID]*podWrites)
	}
	first := &write{kind: kind, perform: perform, done: make(chan struct{})}
	p := &podWrites{since: now, queue: []*write{first}}
	w.pods[uid] = p
	go w.work(uid, p)
	return first
}

// named records the name of a pod that is forgotten, for Pending.
func (w *writes) named(uid types.UID, namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nameLocked(uid, namespace, name)
}

func (w *writes) nameLocked(uid types.UID, namespace, name string) {
	if p := w.pods[uid]; p != nil {
		p.namespace, p.name = namespace, name
	}
}

// work makes the writes of a pod until none is left.
func (w *writes) work(uid types.UID, p *podWrites) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(p.queue) > 0 {
		next := p.queue[0]
		w.mu.Unlock()
		err := next.perform()
		w.mu.Lock()
		w.progressed = time.Now()
		p.queue = p.queue[1:]
		next.settle(err)
		if err != nil && next.lasts() && !slices.ContainsFunc(p.queue, func(x *write) bool { return next.outdatedBy(x.kind) }) {
			w.postpone(uid, next)
			continue
		}
		delete(w.retentions, next.retains)
		if err == nil && next == w.probe {
			w.retryAll()
		}
	}
	delete(w.pods, uid)
	if len(w.pods) == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// lasts reports whether a write that fails is to be made again: otherwise a removal would leave something behind that no other
// write removes, and an end that the API server has would not be kept.
func (x *write) lasts() bool {
	return x.kind == writeFinal || x.kind == writeRemove || x.kind == writeRetain
}

// outdatedBy reports whether a write that failed is not to be made again once there is a later one of a kind.
func (x *write) outdatedBy(kind writeKind) bool {
	return kind == x.kind || kind == writeRemove || x.kind == writeRemove && kind != writeForgetEnds
}

// retryEvery spaces the tries of writes that have failed.
const retryEvery = 30 * time.Second

func (w *writes) postpone(uid types.UID, x *write) {
	if w.failed == nil {
		w.failed = make(map[types.UID]*write)
	}
	w.failed[uid], w.retryAt = x, time.Now().Add(retryEvery)
}

// retry makes one of the writes again that have failed, if it is time.
func (w *writes) retry(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.retryAt) {
		return
	}
	for uid, x := range w.failed {
		delete(w.failed, uid)
		w.retryAt = now.Add(retryEvery)
		w.probe = w.again(uid, x)
		return
	}
}

// retryAll makes all of them again: the disk works.
func (w *writes) retryAll() {
	failed := w.failed
	w.failed, w.probe = nil, nil
	for uid, x := range failed {
		w.again(uid, x)
	}
}

func (w *writes) again(uid types.UID, x *write) *write {
	added := w.addLocked(uid, x.kind, x.perform)
	added.retains = x.retains
	return added
}

func (x *write) settle(err error) {
	if !x.settled {
		x.settled, x.err = true, err
		close(x.done)
	}
}

// drop takes out the writes that are not begun.
func (p *podWrites) drop() {
	for _, x := range p.queue[1:] {
		x.settle(nil)
	}
	clear(p.queue[1:])
	p.queue = p.queue[:1]
}

// delivered ends the wait of calls for the final status of a pod: the API server has it. The writes are made all
// the same. The caller holds the lock.
func (w *writes) delivered(uid types.UID) {
	p := w.pods[uid]
	if p == nil {
		return
	}
	for _, x := range p.queue {
		if x.kind == writeFinal {
			x.settle(nil)
		}
	}
}

// retain removes what the journal has of the pods that are not to be kept: of all that it knows, and with the
// function remove of those whose writes are not done. The functions may be called until the write is done.
func (w *writes) retain(keep func(types.UID) bool, perform func(keep func(types.UID) bool) error, remove func(types.UID) error) *write {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid := range w.pods {
		if uid != "" && !keep(uid) {
			w.addLocked(uid, writeRemove, func() error { return remove(uid) })
		}
	}
	r := &retention{touched: make(map[types.UID]bool)}
	added := w.addLocked("", writeRetain, func() error {
		return perform(func(uid types.UID) bool { return keep(uid) || w.touched(r, uid) })
	})
	delete(w.retentions, added.retains)
	added.retains = r
	if w.retentions == nil {
		w.retentions = make(map[*retention]bool)
	}
	w.retentions[r] = true
	return added
}

func (w *writes) touched(r *retention, uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.touched[uid]
}

// wait waits for a write for as long as the disk gets on with any.
func (w *writes) wait(x *write) error {
	for {
		w.mu.Lock()
		left := time.Until(w.progressed.Add(diskPatience))
		w.mu.Unlock()
		timer := time.NewTimer(max(left, 0))
		select {
		case <-x.done:
			timer.Stop()
			return x.err
		case <-timer.C:
		}
		if left > 0 {
			continue
		}
		select {
		case <-x.done:
			return x.err
		default:
			return errDiskHangs
		}
	}
}

// drain waits for the writes that are there, but not for long.
func (w *writes) drain() {
	w.mu.Lock()
	if len(w.pods) == 0 {
		w.mu.Unlock()
		return
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(journalPatience):
	}
}

// explain adds to what is pending what waits for the disk. Describe returns a pod that is not in the list.
func (w *writes) explain(list []Pending, now time.Time, describe func(types.UID) (Pending, bool)) []Pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	named := make(map[types.UID]bool, len(w.pods))
	for i := range list {
		p := w.pods[list[i].UID]
		if p == nil || !p.keeps() && now.Sub(p.since) < diskSlow {
			continue
		}
		named[list[i].UID] = true
		list[i].Reason = cmp.Or(list[i].Reason, stallJournal)
	}
	for uid, p := range w.pods {
		if uid == "" || named[uid] || now.Sub(p.since) < diskSlow {
			continue
		}
		entry, known := describe(uid)
		if !known {
			entry = Pending{UID: uid, Namespace: p.namespace, Name: p.name}
		}
		entry.Since, entry.Reason = p.since, stallJournal
		list = append(list, entry)
	}
	return list
}

// keeps reports whether the end of the pod is not durable yet.
func (p *podWrites) keeps() bool {
	return slices.ContainsFunc(p.queue, func(x *write) bool { return x.kind == writeFinal })
}
