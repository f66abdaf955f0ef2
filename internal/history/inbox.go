package history

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/podstatus"
)

// inbox holds reports that were not processed yet. Reporters only append.
type inbox struct {
	limit int

	// mu guards the fields below.
	mu     sync.Mutex
	inputs []input
	// joined is what came when inputs was full, by pod.
	joined map[types.UID]*joined
	lost   int // changes between the first and the last status of a pod that were joined
}

// input is one report.
type input struct {
	kind   inputKind
	change podstatus.Change // also the pod, version and time of the other kinds
	// Only of some kinds.
	attempt *podstatus.Undelivered
	record  *Record
}

type inputKind uint8

const (
	changed inputKind = iota
	accepted
	failed
	added
	removed
)

// put appends an input and reports whether it is the first one.
func (b *inbox) put(in *input) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.inputs) < b.limit {
		b.inputs = append(b.inputs, *in)
		return len(b.inputs) == 1
	}
	b.join(in)
	return false
}

// joined is the part of a pod's reports that is kept in a full inbox: the last state.
type joined struct{ changed, accepted, removed *input }

// join keeps an input beyond the limit. The kept inputs are bounded by the number of pods.
func (b *inbox) join(in *input) {
	if in.kind == failed || in.kind == added {
		b.lost++
		return
	}
	if b.joined == nil {
		b.joined = make(map[types.UID]*joined)
	}
	j, ok := b.joined[in.change.UID]
	if !ok {
		j = &joined{}
		b.joined[in.change.UID] = j
	}
	switch in.kind {
	case accepted:
		j.accepted = replace(j.accepted, in)
	case removed:
		j.removed = replace(j.removed, in)
	default:
		if j.changed != nil {
			b.lost++
			in.change.Old, in.change.First = j.changed.change.Old, j.changed.change.First
		}
		j.changed, j.removed = replace(j.changed, in), nil
	}
}

// replace returns a copy of next, in the place of last if there is one: a full inbox is no time to
// allocate.
func replace(last, next *input) *input {
	if last == nil {
		last = new(input)
	}
	*last = *next
	return last
}

// take returns the inputs and empties the inbox.
func (b *inbox) take(spare []input) (inputs []input, lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	inputs = b.inputs
	for _, uid := range slices.Sorted(maps.Keys(b.joined)) {
		j := b.joined[uid]
		for _, in := range []*input{j.changed, j.accepted, j.removed} {
			if in != nil {
				inputs = append(inputs, *in)
			}
		}
	}
	lost = b.lost
	b.inputs, b.joined, b.lost = spare, nil, 0
	return inputs, lost
}

// Changed takes a change of a status. It only appends; the statuses must never change again.
func (s *Store) Changed(c podstatus.Change) { s.put(input{kind: changed, change: c}) }

// Accepted takes that the API server has accepted a version of a pod and all before it.
func (s *Store) Accepted(uid types.UID, version uint64, at time.Time) {
	s.put(input{kind: accepted, change: podstatus.Change{UID: uid, Version: version, At: at}})
}

// Failed takes that a status could not be delivered. It becomes a record when the state of the
// delivery changes, not with each try.
func (s *Store) Failed(a podstatus.Undelivered) {
	s.put(input{kind: failed, change: podstatus.Change{UID: a.UID, Version: a.Version, At: a.At}, attempt: &a})
}

// Removed takes that a pod is gone. Its history stays for [Options.Keep].
func (s *Store) Removed(uid types.UID, at time.Time) {
	s.put(input{kind: removed, change: podstatus.Change{UID: uid, At: at}})
}

// Add takes a record that is no change of a status: a verdict of a probe, a hook, an admission.
// The zero Ref is the node. Seq is set by the store, and Observed if it is zero.
func (s *Store) Add(pod Ref, r Record) {
	if r.Observed.IsZero() {
		r.Observed = time.Now()
	}
	s.put(input{kind: added, change: podstatus.Change{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, At: r.Observed}, record: &r})
}

func (s *Store) put(in input) {
	if s.inbox.put(&in) {
		wake.Up(s.arrived)
	}
}
