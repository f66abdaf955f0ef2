package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/podstatus"
)

// spareInputs is how large an empty inbox may stay.
const spareInputs = 64

// drain makes records of the received reports. The lock is held.
func (s *Store) drain() {
	now := time.Now()
	inputs, lost := s.inbox.take(s.spare)
	for i := range inputs {
		s.take(&inputs[i])
	}
	if lost > 0 {
		s.seq++ // a lost record would have had a number
		s.forgotten = s.seq
		s.nodeRecord(now, "lost", fmt.Sprintf("%d changes came faster than they could be recorded", lost))
	}
	clear(inputs)
	if s.spare = inputs[:0]; cap(inputs) > spareInputs && len(inputs) < cap(inputs)/4 {
		s.spare = nil // gives the memory of a burst back
	}
	if len(inputs) > 0 || lost > 0 {
		s.shed()
		s.progressed()
	}
	s.purge(now)
}

func (s *Store) take(in *input) {
	c := &in.change
	pod, at := Ref{UID: c.UID, Namespace: c.Namespace, Name: c.Name}, unixNano(c.At)
	switch in.kind {
	case changed:
		s.takeChange(s.log(pod, cmp.Or(unixNano(c.Created), at)), c, at)
	case accepted:
		if l, ok := s.logs[c.UID]; ok {
			s.takeAcceptance(l, c.Version, at)
		}
	case failed:
		if l, ok := s.logs[c.UID]; ok {
			s.takeFailure(l, in.attempt, at)
		}
	case added:
		s.takeRecord(s.log(pod, at), in.record, at)
	case removed:
		if l, ok := s.logs[c.UID]; ok && l.gone == 0 {
			s.takeRemoval(l, at)
		}
	}
}

func (s *Store) takeRemoval(l *log, at int64) {
	l.gone, l.trouble = at, nil
	s.write(line{Op: opGone, UID: l.ref.UID, At: at})
	s.takeRecord(l, &Record{Kind: KindDeletion, To: "gone"}, at)
}

// progressed wakes the watches.
func (s *Store) progressed() {
	close(s.progress)
	s.progress = make(chan struct{})
}

// takeRecord adds a record that is not a status change. Admission and end of a pod are recorded
// once; a restarted process reports them again.
func (s *Store) takeRecord(l *log, r *Record, at int64) {
	if (r.Kind == KindAdmission || r.Kind == KindDeletion) && l.has(r) {
		return
	}
	if last := l.last(aboutOf(r)); last != nil && r.From == "" {
		r.From = last.what.Value().To
	}
	s.add(l, r, at, 0)
}

// has reports whether the history has such a record since the pod was last gone.
func (l *log) has(r *Record) bool {
	about := aboutOf(r)
	for i := len(l.entries) - 1; i >= 0; i-- {
		if l.entries[i].about != about {
			continue
		}
		switch w := l.entries[i].what.Value(); {
		case w.To == r.To && w.Reason == text.Cut(r.Reason, maxName):
			return true
		case w.To == "gone":
			return false
		}
	}
	return false
}

// log returns the history of a pod, and creates it if needed.
func (s *Store) log(pod Ref, created int64) *log {
	l, ok := s.logs[pod.UID]
	if !ok {
		l = &log{ref: pod, created: created}
		s.keep(l)
		s.write(podLine(l))
	}
	return l
}

func (s *Store) takeChange(l *log, c *podstatus.Change, at int64) {
	if l.gone != 0 { // a static pod has the same UID in each of its lives
		l.gone = 0
		s.write(podLine(l))
	}
	known := c.First && len(l.entries) > 0
	for _, r := range Diff(c.Old, c.New) {
		if known && s.repeats(l, &r) {
			continue
		}
		if r.Kind == KindReady && r.Reason == "" {
			r.Reason = readyReasons[c.By]
		}
		s.add(l, &r, at, c.Version)
	}
	if c.Finished && !l.finished {
		s.takeRecord(l, &Record{Kind: KindDeletion, To: "ended", Message: "nothing of the pod runs any more"}, at)
	}
	l.finished = c.Finished
}

// readyReasons says why a container has become ready or not, by the call that reported it.
var readyReasons = map[string]string{"SetContainerReadiness": "ReadinessProbe", "SetContainerStartup": "StartupProbe"}

// repeats reports whether a record says what the last one about its subject says. The first change
// after a restart starts from the API's status, which may be older than what the history has.
func (s *Store) repeats(l *log, r *Record) bool {
	last := l.last(aboutOf(r))
	if last == nil {
		return false
	}
	w := last.what.Value()
	r.From = w.To
	return w.To == r.To && w.Reason == text.Cut(r.Reason, maxName)
}

func (s *Store) takeAcceptance(l *log, version uint64, at int64) {
	through := uint64(0)
	for i := range l.entries {
		if e := &l.entries[i]; e.version != 0 && e.version <= version {
			s.seq++
			e.accepted, e.version, e.changed = at, 0, s.seq
			l.changed, through = s.seq, e.seq
		}
	}
	if through != 0 {
		s.write(line{Op: opAccepted, UID: l.ref.UID, At: at, Through: through, Seq: s.seq})
	}
	if t := l.trouble; t != nil {
		l.trouble = nil
		took := text.Span(time.Duration(at - t.since))
		s.add(l, &Record{Kind: KindDelivery, From: t.state, To: "delivered", Message: fmt.Sprintf("after %d tries in %s", t.tries+1, took)}, at, 0)
	}
}

// heldTries is how often a pod must have been looked at before it is worth a record that its
// delivery waits for something on this node. Every pod that ends waits for a moment.
const heldTries = 3

func (s *Store) takeFailure(l *log, a *podstatus.Undelivered, at int64) {
	r := Record{Kind: KindDelivery, Reason: a.Reason, Message: a.Waits}
	switch {
	case a.Writer != "":
		r.To, r.Message = "overwritten", fmt.Sprintf("another writer, %s, changes the status back", a.Writer)
	case a.Err != nil:
		r.To, r.Message = "failing", a.Err.Error()
	case a.Tries >= heldTries:
		r.To = "held"
	default:
		return
	}
	if l.trouble == nil {
		l.trouble = &trouble{since: at}
	}
	t := l.trouble
	t.tries = a.Tries
	if t.state == r.To && t.reason == r.Reason {
		return
	}
	r.From = t.state
	t.state, t.reason = r.To, r.Reason
	s.add(l, &r, at, 0)
}

// add appends a record to a history.
func (s *Store) add(l *log, r *Record, at int64, version uint64) {
	s.seq++
	e := entry{seq: s.seq, changed: s.seq, observed: at, version: version, about: aboutOf(r), what: whatOf(r)}
	s.write(recordLine(l, &e))
	s.append(l, e)
}

func (s *Store) append(l *log, e entry) {
	l.append(e)
	s.total++
	limit := s.opts.PerPod
	if l.ref.UID == "" {
		limit *= 4
	}
	for len(l.entries) > limit {
		s.drop(l)
	}
}

func (s *Store) drop(l *log) {
	dropped := l.drop()
	s.forgotten = max(s.forgotten, dropped.changed)
	s.total--
}

// nodeRecord adds a record about the history itself.
func (s *Store) nodeRecord(at time.Time, to, message string) {
	s.takeRecord(s.log(Ref{}, unixNano(at)), &Record{Kind: KindNode, Subject: "history", To: to, Message: message}, unixNano(at))
}

// shed enforces the total bound. The pods with the most records lose some first, then deleted pods
// are dropped.
func (s *Store) shed() {
	if s.total <= s.opts.Total {
		return
	}
	target := s.opts.Total - s.opts.Total/16 // leaves room, so that not each record triggers it
	s.trim(target, 8)
	if s.total <= s.opts.Total {
		return
	}
	for _, l := range s.byGone() {
		if s.total <= target {
			return
		}
		s.forget(l)
	}
	s.trim(target, 2)
}

// trim drops records of the pods with the most, until there are at most target in all or none has
// more than floor.
func (s *Store) trim(target, floor int) {
	lengths := make([]int, 0, len(s.logs))
	for _, l := range s.logs {
		lengths = append(lengths, len(l.entries))
	}
	level := max(fairShare(lengths, target), floor)
	for _, l := range s.logs {
		for len(l.entries) > level {
			s.drop(l)
		}
	}
}

// fairShare returns the highest number such that if each keeps at most that many, all together
// keep at most target.
func fairShare(lengths []int, target int) int {
	slices.Sort(lengths)
	for i, n := range lengths {
		share := target / (len(lengths) - i)
		if n > share {
			return share
		}
		target -= n
	}
	return target
}

// byGone returns the histories of deleted pods, the longest deleted first.
func (s *Store) byGone() []*log {
	var list []*log
	for _, l := range s.logs {
		if l.gone != 0 {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *log) int { return cmp.Or(cmp.Compare(a.gone, b.gone), cmp.Compare(a.ref.UID, b.ref.UID)) })
	return list
}

func (s *Store) forget(l *log) {
	s.forgotten = max(s.forgotten, l.changed)
	s.total -= len(l.entries)
	delete(s.logs, l.ref.UID)
	rest := slices.DeleteFunc(s.named[l.name()], func(other *log) bool { return other == l })
	if s.named[l.name()] = rest; len(rest) == 0 {
		delete(s.named, l.name())
	}
}

// purgeEvery is how often pods are looked for that have been gone for long enough.
const purgeEvery = 10 * time.Second

func (s *Store) purge(now time.Time) {
	if since := now.Sub(s.purged); since >= 0 && since < purgeEvery {
		return
	}
	s.purged = now
	for _, l := range s.logs {
		switch {
		case l.gone == 0:
		case l.gone > unixNano(now): // the clock was set back
			l.gone = unixNano(now)
		case time.Duration(unixNano(now)-l.gone) >= s.opts.Keep:
			s.forget(l)
		}
	}
}

// unixNano returns 0 for the zero time.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
