package queryapi

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/internal/wake"
)

const (
	// sweepEvery is the interval of checks of all pods while there are watchers: changes by time
	// alone, and changes that the source has not announced, are found by them.
	sweepEvery = 5 * time.Second
	// nodeEvery is how often the node is looked at while pods change: it is a sum over all of them.
	nodeEvery = time.Second
	// minWait keeps a source whose clock is behind from being asked without a pause.
	minWait = 50 * time.Millisecond
	// maxTombstones is how many pods that have gone a watch can resume across.
	maxTombstones = 1000
)

// eventKind is the name of a server-sent event.
type eventKind string

const (
	eventPod    eventKind = "pod"
	eventGone   eventKind = "gone"
	eventNode   eventKind = "node"
	eventDetail eventKind = "detail"
	eventReset  eventKind = "reset"
	eventSynced eventKind = "synced"
)

// row is the newest event of one pod, or of the node, whose UID is empty.
type row struct {
	uid             types.UID
	namespace, name string
	revision        uint64
	// touched is the revision at which the pod was last announced as changed, whether or not its row did.
	touched uint64
	kind    eventKind
	data    string
	// pod and counted are what data was made of, at looked.
	pod     view.Pod
	counted view.PodSummary
	looked  time.Time
	// at is the time of the facts; print and shape are what the next facts are compared with.
	at           time.Time
	print, shape string
	state        explain.State
	// due is when the row is looked at again though nothing is announced.
	due   time.Time
	place *list.Element
}

// hub keeps the newest event of each pod in the order of revisions.
type hub struct {
	source view.Source
	loc    *time.Location
	// known is what else is known of the node.
	known view.Sources
	now   func() time.Time
	wake  chan struct{} // capacity 1: one wake-up stands for any number of changes

	// dirtyMu guards dirty, the pods that were announced as changed and not looked at since.
	dirtyMu sync.Mutex
	dirty   map[types.UID]bool

	// turn is held while pods are looked at, so that an older look does not overwrite a newer one.
	turn sync.Mutex

	// mu guards the fields below. It is not held during calls of the source.
	mu       sync.Mutex
	rows     map[types.UID]*row
	names    map[string]*row // the newest pod of each NAMESPACE/NAME
	order    *list.List      // of *row, by revision
	revision uint64
	// lost is the revision of the newest tombstone that was dropped: a watch cannot resume before it.
	lost       uint64
	tombstones int
	// changed is closed, and replaced, with each new revision.
	changed  chan struct{}
	watchers int
}

func newHub(o Options, now func() time.Time) *hub {
	return &hub{
		source: o.Source, loc: o.Location, known: o.Sources, now: now, wake: make(chan struct{}, 1),
		dirty: map[types.UID]bool{}, rows: map[types.UID]*row{}, names: map[string]*row{}, order: list.New(), changed: make(chan struct{}),
	}
}

// announce notes that a pod has changed; an empty UID is the node.
func (h *hub) announce(uid types.UID) {
	h.dirtyMu.Lock()
	h.dirty[uid] = true
	h.dirtyMu.Unlock()
	wake.Up(h.wake)
}

func (h *hub) takeDirty() []types.UID {
	h.dirtyMu.Lock()
	defer h.dirtyMu.Unlock()
	taken := make([]types.UID, 0, len(h.dirty))
	for uid := range h.dirty {
		taken = append(taken, uid)
	}
	clear(h.dirty)
	slices.Sort(taken) // so that the order of revisions does not depend on the order of a map
	return taken
}

// run looks at pods that have changed as long as there are watchers, until ctx ends.
func (h *hub) run(ctx context.Context) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	var lastNode time.Time
	nodePending := false
	for {
		next := sweepEvery
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
			nodePending = true
		case <-alarm.C:
		case <-sweep.C:
			nodePending = true
			if h.watched() {
				h.look(h.unmatched(), false)
				h.look(h.source.UIDs(), false)
			}
		}
		if !h.watched() {
			continue
		}
		h.look(h.takeDirty(), true)
		h.look(h.overdue(), false)
		if wait := nodeEvery - time.Since(lastNode); nodePending && wait <= 0 {
			h.lookAtNode()
			lastNode, nodePending = time.Now(), false
		} else if nodePending {
			next = min(next, wait)
		}
		alarm.Reset(max(minWait, min(next, h.untilDue())))
	}
}

func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watchers > 0
}

// refresh looks at everything that may have changed, so that rows and revision are of now.
func (h *hub) refresh() {
	h.look(h.takeDirty(), true)
	h.look(h.unmatched(), false)
}

// unmatched are pods without a row and rows without a pod.
func (h *hub) unmatched() (uids []types.UID) {
	present := map[types.UID]bool{}
	for _, uid := range h.source.UIDs() {
		present[uid] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for uid := range present {
		if r := h.rows[uid]; r == nil || r.kind != eventPod {
			uids = append(uids, uid)
		}
	}
	for uid, r := range h.rows {
		if r.kind == eventPod && !present[uid] {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

func (h *hub) overdue() (uids []types.UID) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for uid, r := range h.rows {
		if !r.due.IsZero() && !r.due.After(now) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

func (h *hub) untilDue() time.Duration {
	now, wait := h.now(), sweepEvery
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.rows {
		if !r.due.IsZero() {
			wait = min(wait, max(0, r.due.Sub(now)))
		}
	}
	return wait
}

// look brings the rows of pods up to date. announced: the source has said that they have changed.
func (h *hub) look(uids []types.UID, announced bool) {
	if len(uids) == 0 {
		return
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	found, changed := view.FindingsOf(h.known), false
	for _, uid := range uids {
		if uid == "" {
			continue
		}
		if pod, ok := h.source.Pod(uid); ok {
			changed = h.update(uid, pod, found, announced) || changed
		} else {
			changed = h.bury(uid) || changed
		}
	}
	if changed {
		h.broadcast()
	}
}

// update compares a pod with its row, and reports whether there is something new.
func (h *hub) update(uid types.UID, pod view.Pod, found view.Findings, announced bool) bool {
	h.mu.Lock()
	old := h.rows[uid]
	h.mu.Unlock()
	summary, why := view.Summarize(pod, h.loc)
	found.Count(&summary)
	r := &row{
		uid: uid, namespace: summary.Namespace, name: summary.Name, kind: eventPod, at: pod.Facts.Now,
		shape: why.Outline(), state: summary.State, due: due(why, pod.Facts.Now),
	}
	if old != nil && old.kind == eventPod && old.shape == r.shape && old.print == fingerprint(pod, found, old.at, h.loc) {
		h.mu.Lock()
		defer h.mu.Unlock()
		old.due = r.due
		if announced {
			h.revision++
			old.touched = h.revision
		}
		return announced
	}
	r.print = fingerprint(pod, found, r.at, h.loc)
	r.data, r.pod, r.counted, r.looked = encode(summary), pod, summary, h.now()
	h.put(r)
	return true
}

// bury replaces the row of a pod that has gone by a tombstone.
func (h *hub) bury(uid types.UID) bool {
	h.mu.Lock()
	old := h.rows[uid]
	h.mu.Unlock()
	if old == nil || old.kind != eventPod {
		return false
	}
	h.put(&row{
		uid: uid, namespace: old.namespace, name: old.name, kind: eventGone,
		data: encode(view.GonePod{Namespace: old.namespace, Name: old.name, UID: uid}),
	})
	return true
}

func (h *hub) lookAtNode() {
	h.turn.Lock()
	defer h.turn.Unlock()
	detail := h.node()
	fingerprint := nodeFingerprint(detail)
	h.mu.Lock()
	old := h.rows[""]
	h.mu.Unlock()
	if old != nil && old.print == fingerprint {
		return
	}
	h.put(&row{kind: eventNode, print: fingerprint, data: encode(detail)})
	h.broadcast()
}

// node is everything that is known of the node, with the states of the rows.
func (h *hub) node() view.NodeDetail {
	detail := view.DescribeNode(h.known)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.rows {
		if r.kind == eventPod {
			detail.Pods[r.state]++
		}
	}
	return detail
}

// put gives a row the next revision. A row is not changed after that, except for due and touched.
func (h *hub) put(r *row) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revision++
	r.revision, r.touched = h.revision, h.revision
	if old := h.rows[r.uid]; old != nil {
		h.order.Remove(old.place)
		if old.kind == eventGone {
			h.tombstones--
		}
	}
	h.rows[r.uid] = r
	r.place = h.order.PushBack(r)
	key := r.namespace + "/" + r.name
	if other := h.names[key]; r.uid != "" && (other == nil || other.uid == r.uid || r.kind == eventPod) {
		h.names[key] = r // the end of an earlier pod does not hide a later one of its name
	}
	if r.kind == eventGone {
		h.tombstones++
		h.forget()
	}
}

// forget drops the oldest tombstones beyond the bound. The caller holds mu.
func (h *hub) forget() {
	for e := h.order.Front(); e != nil && h.tombstones > maxTombstones; {
		next := e.Next()
		if r := e.Value.(*row); r.kind == eventGone {
			h.order.Remove(e)
			delete(h.rows, r.uid)
			if key := r.namespace + "/" + r.name; h.names[key] == r {
				delete(h.names, key)
			}
			h.lost = r.revision
			h.tombstones--
		}
		e = next
	}
}

func (h *hub) broadcast() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// event is what one watcher is sent.
type event struct {
	kind     eventKind
	revision uint64
	data     string
}

// fresh is how old the words of a row may be when they are sent.
const fresh = time.Second

// dataOf is the current data of a row: an old change says "10 min ago" by then, not "2 s ago".
func (h *hub) dataOf(r *row) string {
	passed := h.now().Sub(r.looked)
	if r.kind != eventPod || passed < fresh {
		return r.data
	}
	pod := r.pod
	pod.Facts.Now = r.at.Add(passed)
	summary, _ := view.Summarize(pod, h.loc)
	summary.Drift, summary.Alerts = r.counted.Drift, r.counted.Alerts
	return encode(summary)
}

// after returns the events after a revision, at most limit, the oldest first; the revision that the
// watcher has reached with them; and a channel that is closed when there are more. Ends of pods up to
// the revision began are left out.
func (h *hub) after(revision, began uint64, limit int) ([]event, uint64, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.order.Back()
	for e != nil && e.Value.(*row).revision > revision {
		e = e.Prev()
	}
	if e == nil {
		e = h.order.Front()
	} else {
		e = e.Next()
	}
	var events []event
	for ; e != nil; e = e.Next() {
		if len(events) == limit {
			return events, events[limit-1].revision, h.changed
		}
		r := e.Value.(*row)
		if r.kind == eventGone && r.revision <= began {
			continue
		}
		events = append(events, event{r.kind, r.revision, h.dataOf(r)})
	}
	return events, h.revision, h.changed
}

// resumable reports whether a watch from a revision misses nothing.
func (h *hub) resumable(revision uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return revision >= h.lost && revision <= h.revision
}

func (h *hub) current() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revision
}

// join counts a watcher, and reports false if there are limit already. The first one starts the
// looking at pods.
func (h *hub) join(limit int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers >= limit {
		return false
	}
	h.watchers++
	return true
}

func (h *hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers--
}

// newest returns the row of the newest pod of a name or nil, the revision at which the row was last
// announced, and a channel that is closed when a newer pod may exist.
func (h *hub) newest(namespace, name string) (r *row, touched uint64, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r = h.names[namespace+"/"+name]; r != nil {
		touched = r.touched
	}
	return r, touched, h.changed
}
