package guard

import (
	"slices"
	"time"
)

// State is the state of [Judge] between two looks. It is plain data, and survives a restart.
type State struct {
	Health Health    `json:"health,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Looked is the time of the last verdict. A time in the future shows that the clock was set back.
	Looked time.Time `json:"looked,omitzero"`
	// Signs are the signs against the kubelet, by code.
	Signs map[string]Sign `json:"signs,omitempty"`
	// SawProcess: the process was found at least once, so that its absence means something.
	SawProcess bool `json:"sawProcess,omitempty"`
	// APISince is since when the API server has answered each time; zero if it does not.
	APISince time.Time `json:"apiSince,omitzero"`
	// Started is the start of the process that was seen last, Starts are those of the last hour that the
	// guard did not make, Expected is until when a start is the guard's own.
	Started  time.Time   `json:"started,omitzero"`
	Starts   []time.Time `json:"starts,omitempty"`
	Expected time.Time   `json:"expected,omitzero"`
	// Supervised is the supervisor's own count of restarts, SupervisedAt is when it was read last.
	Supervised   uint32    `json:"supervised,omitempty"`
	SupervisedAt time.Time `json:"supervisedAt,omitzero"`
	// Vain are the ends, one after the other, of processes that the guard started and that were not seen at work
	// before. A process that is ends the row.
	Vain []time.Time `json:"vain,omitempty"`
	// Worked is the start of the process that was last seen at work.
	Worked time.Time `json:"worked,omitzero"`
	// NoSpace: the disk was full at the last look.
	NoSpace bool `json:"noSpace,omitempty"`
	// Accepted is when the API server last accepted a write of the lease from here; AcceptedSince is the first of the writes accepted without
	// a refusal in between. LeaseTried is when the kubelet was restarted for a stale lease alone, until a process renews it.
	Accepted      time.Time `json:"accepted,omitzero"`
	AcceptedSince time.Time `json:"acceptedSince,omitzero"`
	LeaseTried    time.Time `json:"leaseTried,omitzero"`
}

// Sign is something that speaks against the kubelet.
type Sign struct {
	// Since is the first bad observation that no sufficient run of good ones has followed, Last the
	// newest.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
	// Good counts the good observations after the last bad one, GoodSince is the first of them.
	Good      int       `json:"good,omitempty"`
	GoodSince time.Time `json:"goodSince,omitzero"`
	Text      string    `json:"text"`
	// Contradicted is the evidence against the sign itself, Beside an oddity that does not contradict
	// the sign.
	Contradicted string `json:"contradicted,omitempty"`
	Beside       string `json:"beside,omitempty"`
}

const (
	// A sign is gone after two good observations this far apart, or without any news after forget, which is longer than two
	// looks are apart. Bad observations further apart than that do not add up.
	goodSpan = 2 * time.Second
	forget   = 2 * time.Minute
	// renewalPause is longer than a kubelet waits after a renewal that failed before it tries again: 10 s, a request that may take 10 s, and a
	// back-off of 7 s. When an API server accepts writes again after an outage, all kubelets of a cluster have stale leases for that long.
	renewalPause = 30 * time.Second
	// startJitter is how far two readings of one start may be apart: the kernel counts in ticks since boot.
	startJitter = 2 * time.Second
	// expectStart is how long after a restart by the guard a start counts as its own.
	expectStart = 30 * time.Second
	// countGap is the maximum age of the supervisor's previous count; the starts added to an older count may
	// not be recent.
	countGap = time.Minute
)

// Restarted records that the guard has restarted the kubelet: the start that follows is its own.
func (s State) Restarted(now time.Time) State {
	s.Expected = now.Add(expectStart)
	return s
}

// tried records why the guard restarts the kubelet. A restart for a stale lease that did not bring a renewal is not repeated.
func (s State) tried(reason string, now time.Time) State {
	if reason == LeaseStale {
		s.LeaseTried = now
	}
	return s
}

// clone is a copy that shares nothing with the state.
func (s State) clone() State {
	signs := make(map[string]Sign, len(s.Signs))
	for code, sign := range s.Signs {
		signs[code] = sign
	}
	s.Signs, s.Starts, s.Vain = signs, slices.Clone(s.Starts), slices.Clone(s.Vain)
	return s
}

// setBack shifts all times after the clock was set back since the last look, so that earlier times stay in the
// past.
func (s *State) setBack(now time.Time) {
	if !now.Before(s.Looked) {
		return
	}
	move := func(times ...*time.Time) {
		for _, t := range times {
			if !t.IsZero() {
				*t = t.Add(now.Sub(s.Looked))
			}
		}
	}
	for code, sign := range s.Signs {
		move(&sign.Since, &sign.Last, &sign.GoodSince)
		s.Signs[code] = sign
	}
	for i := range s.Starts {
		move(&s.Starts[i])
	}
	for i := range s.Vain {
		move(&s.Vain[i])
	}
	move(&s.Since, &s.APISince, &s.Expected, &s.SupervisedAt, &s.Accepted, &s.AcceptedSince, &s.LeaseTried)
}

// remember stores facts that are no signs but are needed to read signs.
func (s *State) remember(e Evidence, now time.Time) {
	s.setBack(now)
	if now.Sub(s.Looked) > forget { // the machine, or this program, was asleep: the kubelet gets the time to renew its lease
		s.APISince = time.Time{}
	}
	s.Looked = now
	switch a := e.APIServer; {
	case a.Known && !a.Value.OK:
		s.APISince = time.Time{}
	case a.Known && s.APISince.IsZero():
		s.APISince = a.At
	case !a.Known && !e.Lease.Known:
		s.APISince = time.Time{}
	case !a.Known && s.APISince.IsZero(): // the lease came from it
		s.APISince = e.Lease.At
	}
	s.rememberWrites(e.Writes)
	if lease := e.Lease; lease.Known && (lease.Value.Renewed.After(s.LeaseTried) || lease.Value.Seen.After(s.LeaseTried.Add(startJitter))) {
		s.LeaseTried = time.Time{}
	}
	s.Starts = slices.DeleteFunc(s.Starts, func(t time.Time) bool { return now.Sub(t) > time.Hour })
	if d := e.Disk; d.Known {
		if s.NoSpace && !d.Value.Full() {
			s.Vain = nil // there was a cause, and it is gone
		}
		s.NoSpace = d.Value.Full()
	}
	if e.Process.Known {
		s.rememberStart(e.Process.Value, now)
		s.rememberEnd(e, now)
	}
}

// rememberWrites takes in whether a write of the lease was accepted.
func (s *State) rememberWrites(w Fact[Answer]) {
	switch {
	case !w.Known:
	case !w.Value.OK:
		s.AcceptedSince = time.Time{}
	default:
		if s.AcceptedSince.IsZero() || w.At.Sub(s.Accepted) > forget {
			s.AcceptedSince = w.At
		}
		s.Accepted = w.At
	}
}

// rememberStart counts the starts that the guard did not make. A supervisor also counts starts
// between two observations; the times of starts before the first observation are unknown.
func (s *State) rememberStart(p Process, now time.Time) {
	if p.Unit != "" {
		if !s.SupervisedAt.IsZero() && now.Sub(s.SupervisedAt) < countGap {
			for range min(p.Starts-min(s.Supervised, p.Starts), loopStarts) {
				s.Starts = append(s.Starts, now)
			}
		}
		s.Supervised, s.SupervisedAt = p.Starts, now
	}
	if !p.Exists {
		return
	}
	first := !s.SawProcess
	s.SawProcess = true
	if p.Started.IsZero() || p.Started.Sub(s.Started).Abs() <= startJitter {
		return
	}
	if p.Started.Before(s.Started) { // by a clock that was set back
		s.Started = p.Started
		return
	}
	if !first && p.Unit == "" && p.Started.After(s.Expected) {
		s.Starts = append(s.Starts, p.Started)
	}
	s.Started = p.Started
}

// rememberEnd counts the processes that the guard started without success. The supervisor of a unit counts the processes
// that it started. Without /healthz, whether a process has worked is unknown.
func (s *State) rememberEnd(e Evidence, now time.Time) {
	s.Vain = slices.DeleteFunc(s.Vain, func(t time.Time) bool { return now.Sub(t) > loopWindow })
	p := e.Process.Value
	if p.Exists {
		if atWork(e) {
			s.Worked, s.Vain = p.Started, nil
		}
		return
	}
	known := !p.Started.IsZero() && !p.Ended.IsZero() && e.Healthz.Known
	if !known || p.Started.After(s.Expected) || (p.Started.Sub(s.Worked)).Abs() <= startJitter {
		return
	}
	if n := len(s.Vain); n == 0 || p.Ended.After(s.Vain[n-1]) {
		s.Vain = append(s.Vain, p.Ended)
	}
}

// atWork reports whether this very process has answered or renewed the lease.
func atWork(e Evidence) bool {
	started := e.Process.Value.Started
	lease := e.Lease
	return e.Healthz.Known && e.Healthz.Value.OK && e.Healthz.At.After(started) ||
		lease.Known && lease.Value.Exists && !lease.Value.Foreign && lease.Value.Renewed.After(started.Add(startJitter))
}

func (s *State) startsSince(from time.Time) int {
	n := 0
	for _, t := range s.Starts {
		if t.After(from) {
			n++
		}
	}
	return n
}

// take counts the observations of one look. An observation that was counted before, because its
// source is read less often than the others, is not counted again.
func (s *State) take(l look, now time.Time) {
	for code, o := range l {
		sign, open := s.Signs[code]
		switch {
		case o.at.After(now): // of before the clock was set back, and counted then
		case o.bad && (!open || !sign.established(rules[code]) && o.at.Sub(sign.Last) > forget):
			s.Signs[code] = Sign{Since: o.at, Last: o.at, Count: 1, Text: o.text}
		case o.bad && o.at.After(sign.Last):
			sign.Last, sign.Count, sign.Good, sign.GoodSince, sign.Text = o.at, sign.Count+1, 0, time.Time{}, o.text
			s.Signs[code] = sign
		case !o.bad && open && o.at.After(sign.Last):
			s.takeGood(code, sign, o.at)
		}
	}
	for code, sign := range s.Signs {
		if _, known := l[code]; !known && now.Sub(sign.Last) > forget {
			delete(s.Signs, code)
		}
	}
}

// takeGood ends an established sign only after good observations over some time, so that a kubelet
// that answers every other request does not flap. A sign that was not established ends at once.
func (s *State) takeGood(code string, sign Sign, at time.Time) {
	if sign.Good == 0 {
		sign.GoodSince = at
	}
	sign.Good++
	// What was wrong with a process is over with it, and must not be held against the next one. Its start is read up to startJitter too
	// early, that is, before the last time that the process before was seen.
	another := (code == ProcessGone || code == ProcessStopped) && s.Started.After(sign.Since)
	if another || !sign.established(rules[code]) || sign.Good >= 2 && at.Sub(sign.GoodSince) >= goodSpan {
		delete(s.Signs, code)
		return
	}
	s.Signs[code] = sign
}

func (s Sign) established(r rule) bool { return s.Count >= r.count && s.Last.Sub(s.Since) >= r.span }

// contradict notes which signs the lease contradicts: a kubelet that is gone, stopped or silent renews no lease. A contradiction shows that the guard
// searches another PID namespace, or sends requests in another network namespace. The supervisor's facts about the process are not contradicted: then
// another program, or another machine of the same name, renews the lease. A renewal in the future proves nothing.
func (s *State) contradict(e Evidence, now time.Time) {
	lease := e.Lease.Value
	if !e.Lease.Known || !lease.Exists || lease.Renewed.After(now.Add(time.Second)) {
		return // the kubelet writes the time of this machine: another writer, or the clock before it was set back, has written the future
	}
	for code, sign := range s.Signs {
		switch {
		case !rules[code].byLease || !lease.Renewed.After(sign.Since.Add(time.Second)):
			continue
		case rules[code].kind == "process" && e.Process.Known && e.Process.Value.Sure, lease.Foreign:
			sign.Beside = "its lease was renewed later, at " + lease.Renewed.UTC().Format(time.RFC3339) + lease.writtenBy() +
				": another program, or another machine with the name of this node, renews it"
			s.Signs[code] = sign
		default:
			sign.Contradicted = "its lease was renewed later, at " + lease.Renewed.UTC().Format(time.RFC3339) +
				": does statusd run in the network and PID namespaces of the machine?"
			s.Signs[code] = sign
		}
	}
}

// writtenBy describes the writer of a lease.
func (l Lease) writtenBy() string {
	text := ""
	if l.Writer != "" {
		text += ", by " + l.Writer
	}
	if l.Holder != "" {
		text += ", for the holder " + l.Holder
	}
	return text
}

// weight is what a sign that is established amounts to. A stale lease alone proves nothing about a kubelet until the API server is known
// to have accepted such writes for long enough, and nothing any more once a restart did not bring a renewal.
func (s *State) weight(code string) weight {
	opportunity := !s.AcceptedSince.IsZero() && s.Looked.Sub(s.AcceptedSince) >= renewalPause
	if code == LeaseStale && opportunity && s.Accepted.After(s.Signs[code].Since) && s.LeaseTried.IsZero() {
		if refused, open := s.Signs[WritesRefused]; !open || refused.Good > 0 {
			return proof
		}
	}
	return rules[code].weight
}
