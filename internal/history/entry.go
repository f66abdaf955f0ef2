package history

import (
	"slices"
	"time"
	"unique"

	"github.com/statusd/statusd/internal/text"
)

// entry is a record in memory. Pods behave alike, so the common part of equal records is stored
// once.
type entry struct {
	seq      uint64
	changed  uint64 // the sequence number of its last change, for watches
	observed int64  // as Unix nanoseconds
	accepted int64  // 0: not accepted
	version  uint64 // the version of the status that the API server is to accept; 0: none
	dropped  uint32
	about    unique.Handle[subject]
	what     unique.Handle[what]
}

// subject is what a record is about: a condition, a container, a probe.
type subject struct {
	Kind      Kind   `json:"kind"`
	Subject   string `json:"subject,omitempty"`
	Container string `json:"container,omitempty"`
}

// what describes an event of a subject.
type what struct {
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// The bounds of texts.
const (
	maxName    = 253
	maxMessage = 512
)

func aboutOf(r *Record) unique.Handle[subject] {
	return unique.Make(subject{Kind: Kind(text.Cut(string(r.Kind), maxName)), Subject: text.Cut(r.Subject, maxName), Container: text.Cut(r.Container, maxName)})
}

func whatOf(r *Record) unique.Handle[what] {
	return unique.Make(what{From: text.Cut(r.From, maxName), To: text.Cut(r.To, maxName), Reason: text.Cut(r.Reason, maxName), Message: text.Cut(r.Message, maxMessage)})
}

// record returns the entry as it is handed out.
func (e *entry) record() Record {
	w, about := e.what.Value(), e.about.Value()
	r := Record{Seq: e.seq, Observed: instant(e.observed), Kind: about.Kind, Subject: about.Subject, Container: about.Container,
		From: w.From, To: w.To, Reason: w.Reason, Message: w.Message, Dropped: int(e.dropped)}
	if e.accepted != 0 {
		at := instant(e.accepted)
		r.Accepted = &at
	}
	return r
}

func instant(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }

// log is the history of one pod, or of the node.
type log struct {
	ref           Ref
	created, gone int64
	entries       []entry
	changed       uint64   // the newest of entries[i].changed
	dropped       int      // all that were dropped
	trouble       *trouble // what keeps the API server from knowing the newest status
	finished      bool
}

// trouble is a delivery that does not succeed.
type trouble struct {
	since int64
	tries int
	// state and reason are what the last record said.
	state, reason string
}

// last returns the newest entry about a subject, or nil.
func (l *log) last(about unique.Handle[subject]) *entry {
	for i := len(l.entries) - 1; i >= 0; i-- {
		if l.entries[i].about == about {
			return &l.entries[i]
		}
	}
	return nil
}

// drop removes one entry so that the past of what happens often gives way to all else: the oldest
// but the first of the subject that has the most. drop returns the removed entry. At least two
// entries must be there.
func (l *log) drop() entry {
	type count struct {
		about unique.Handle[subject]
		n     int
	}
	var few [16]count // most pods have few subjects
	counts := few[:0]
	most := count{}
	for i := range l.entries {
		about := l.entries[i].about
		j := slices.IndexFunc(counts, func(c count) bool { return c.about == about })
		if j < 0 {
			j = len(counts)
			counts = append(counts, count{about: about})
		}
		if counts[j].n++; counts[j].n > most.n {
			most = counts[j]
		}
	}
	if most.n < 3 {
		return l.remove(l.oldestBetween())
	}
	first := slices.IndexFunc(l.entries, func(e entry) bool { return e.about == most.about })
	for i := first + 1; ; i++ {
		if l.entries[i].about == most.about {
			return l.remove(i)
		}
	}
}

// oldestBetween is the oldest entry that is neither the first nor the newest of the pod, or the
// first if there are only two.
func (l *log) oldestBetween() int {
	if len(l.entries) > 2 {
		return 1
	}
	return 0
}

// remove takes out an entry and counts it at the next one of its subject.
func (l *log) remove(i int) entry {
	removed := l.entries[i]
	l.entries = slices.Delete(l.entries, i, i+1)
	l.dropped++
	for j := i; j < len(l.entries); j++ {
		if l.entries[j].about == removed.about {
			l.entries[j].dropped += removed.dropped + 1
			break
		}
	}
	return removed
}

// append adds an entry. Most pods have few, so that the slice grows by a few.
func (l *log) append(e entry) {
	if len(l.entries) == cap(l.entries) {
		l.entries = append(make([]entry, 0, len(l.entries)+max(2, len(l.entries)/8)), l.entries...)
	}
	l.entries = append(l.entries, e)
	l.changed = max(l.changed, e.changed)
}

func (l *log) pod() Pod {
	p := Pod{Ref: l.ref, Created: instant(l.created), Dropped: l.dropped, Records: make([]Record, len(l.entries))}
	if l.gone != 0 {
		gone := instant(l.gone)
		p.Gone = &gone
	}
	for i := range l.entries {
		p.Records[i] = l.entries[i].record()
	}
	return p
}
