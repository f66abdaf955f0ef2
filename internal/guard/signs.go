package guard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/text"
)

// The codes of reasons.
const (
	ProcessGone          = "ProcessGone"
	ProcessStopped       = "ProcessStopped"
	CrashLooping         = "CrashLooping"
	HealthzFailing       = "HealthzFailing"
	HealthzSilent        = "HealthzSilent"
	SyncLoopStuck        = "SyncLoopStuck"
	LeaseStale           = "LeaseStale"
	LeaseLate            = "LeaseLate"
	NotRegistered        = "NotRegistered"
	PLEGStale            = "PLEGStale"
	PLEGSlow             = "PLEGSlow"
	RuntimeErrors        = "RuntimeErrors"
	StatusBehind         = "StatusBehind"
	SyncBehind           = "SyncBehind"
	SourceSilent         = "SourceSilent"
	RuntimeDown          = "RuntimeDown"
	RuntimeHangs         = "RuntimeHangs"
	WritesRefused        = "WritesRefused"
	APIServerUnreachable = "APIServerUnreachable"
	DiskFull             = "DiskFull"
	CertificateExpired   = "CertificateExpired"
	Starting             = "Starting"
	TooLittleEvidence    = "TooLittleEvidence"
)

const (
	// startGrace is the time for a kubelet to start; missing work does not count before.
	startGrace = time.Minute
	// leaseDuration is used if the lease does not say how long it counts.
	leaseDuration = 40 * time.Second
	// plegBound is after how long without a relist a kubelet reports itself not ready.
	plegBound = 3 * time.Minute
	// relistBound is a relist that takes so long that a kubelet logs it, ten times over.
	relistBound = 10 * time.Second
	// behindBound is how long a status may be behind: an audit calls less than that propagation.
	behindBound = 2 * time.Minute
	// operationsFloor is how many requests to the runtime make a rate of errors mean something.
	operationsFloor = 5
	// loopStarts within loopWindow make a crash loop.
	loopStarts = 4
	loopWindow = 10 * time.Minute
)

// weight is what a sign alone amounts to once it is established.
type weight int

const (
	cause weight = iota // not the kubelet's fault: it is degraded, and a restart does not help
	minor               // degraded
	half                // degraded; two halves of different kinds are unhealthy
	proof               // unhealthy
)

// rule is when a sign is established: so many bad observations over so long a time.
type rule struct {
	weight weight
	// kind is what the sign is read from. Two signs of a kind do not corroborate each other.
	kind  string
	count int
	span  time.Duration
	// byLease: a lease that is renewed later contradicts it.
	byLease bool
}

// rules are all signs. One bad observation never establishes a sign.
var rules = map[string]rule{
	ProcessGone:          {proof, "process", 2, 2 * time.Second, true},
	ProcessStopped:       {proof, "process", 3, 5 * time.Second, true},
	CrashLooping:         {proof, "process", 2, 2 * time.Second, false},
	HealthzFailing:       {proof, "answer", 3, 10 * time.Second, false},
	SyncLoopStuck:        {proof, "answer", 3, 20 * time.Second, false},
	HealthzSilent:        {half, "answer", 3, 8 * time.Second, true},
	LeaseStale:           {half, "writes", 2, 8 * time.Second, false}, // a proof once the API server accepts such writes: see [State.weight]
	LeaseLate:            {half, "writes", 2, 8 * time.Second, false},
	NotRegistered:        {minor, "writes", 3, 20 * time.Second, false},
	PLEGStale:            {proof, "pleg", 2, 10 * time.Second, false},
	PLEGSlow:             {minor, "pleg", 2, 10 * time.Second, false},
	RuntimeErrors:        {minor, "operations", 3, 20 * time.Second, false},
	StatusBehind:         {half, "writes", 2, 10 * time.Second, false},
	SyncBehind:           {minor, "audit", 2, 10 * time.Second, false},
	SourceSilent:         {half, "source", 3, time.Minute, false},
	RuntimeDown:          {cause, "runtime", 3, 8 * time.Second, false},
	RuntimeHangs:         {cause, "runtime", 2, 10 * time.Second, false},
	WritesRefused:        {cause, "writes", 2, 8 * time.Second, false},
	APIServerUnreachable: {cause, "apiserver", 3, 8 * time.Second, false},
	DiskFull:             {cause, "disk", 2, 2 * time.Second, false},
	CertificateExpired:   {cause, "certificate", 2, 2 * time.Second, false},
}

// observation is what one look says of one sign. A sign that is not observed is not known.
type observation struct {
	at   time.Time
	bad  bool
	text string
}

// look collects the observations of one look.
type look map[string]observation

func (l look) add(code string, at time.Time, bad bool, format string, args ...any) {
	l[code] = observation{at, bad, fmt.Sprintf(format, args...)}
}

// observe reads the evidence. Missing work of a starting kubelet is not observed.
func observe(e Evidence, s *State, now time.Time) look {
	l := look{}
	observeProcess(l, e, s, now)
	observeCauses(l, e, s, now)
	if isStarting(e, now) {
		l.addGood(e, s, now)
		return l
	}
	observeAnswers(l, e)
	observeLease(l, e, s, now)
	observeWork(l, e, now)
	return l
}

// addGood adds only the good observations of a starting kubelet.
func (l look) addGood(e Evidence, s *State, now time.Time) {
	all := look{}
	observeAnswers(all, e)
	observeLease(all, e, s, now)
	observeWork(all, e, now)
	for code, o := range all {
		if !o.bad {
			l[code] = o
		}
	}
}

func isStarting(e Evidence, now time.Time) bool {
	p := e.Process
	return p.Known && p.Value.startKnown(now) && now.Sub(p.Value.Started) < startGrace
}

// startKnown reports whether there is a process with a known start. A start in the future was recorded before the
// clock was set back.
func (p Process) startKnown(now time.Time) bool {
	return p.Exists && !p.Started.IsZero() && !p.Started.After(now.Add(startJitter))
}

func observeProcess(l look, e Evidence, s *State, now time.Time) {
	p := e.Process.Value
	switch {
	case !e.Process.Known:
		return
	case p.Exists:
		l.add(ProcessGone, e.Process.At, false, "the process runs")
		how := "stopped (state T)"
		if p.Zombie {
			how = "a zombie: its parent has not waited for it"
		}
		l.add(ProcessStopped, e.Process.At, p.Stopped || p.Zombie, "process %d is %s", p.PID, how)
	case p.Starting: // it is not there yet
	case p.Sure || s.SawProcess:
		l.add(ProcessGone, e.Process.At, true, "the process is gone%s", ending(p))
	}
	observeLoop(l, e, s, now)
}

// observeLoop adds whether the process ends again and again, started by the guard or by others. A process that has run for
// longer than loopWindow/loopStarts has left the loop.
func observeLoop(l look, e Evidence, s *State, now time.Time) {
	p := e.Process.Value
	if n := len(s.Vain); n >= loopStarts {
		l.add(CrashLooping, e.Process.At, true, "the guard has started it %d times within %s, and each time it ended before it answered%s", n, text.Took(loopWindow), ending(p))
		return
	}
	recent := s.startsSince(now.Add(-loopWindow))
	settled := p.Exists && !p.Started.IsZero() && now.Sub(p.Started) > loopWindow/loopStarts
	l.add(CrashLooping, e.Process.At, recent >= loopStarts && !settled, "%d starts within %s that the guard did not make%s", recent, text.Took(loopWindow), ending(p))
}

// ending is how the last process ended, in words.
func ending(p Process) string {
	switch {
	case p.Signal != "":
		return ", ended by " + p.Signal
	case p.ExitCode != nil:
		return fmt.Sprintf(", exit code %d", *p.ExitCode)
	}
	return ""
}

func observeAnswers(l look, e Evidence) {
	if h := e.Healthz; h.Known {
		l.add(HealthzFailing, h.At, h.Value.Answered && !h.Value.OK, "/healthz says %s", h.Value.Text)
		l.add(HealthzSilent, h.At, !h.Value.Answered, "/healthz does not answer: %s", h.Value.Text)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Parts)) {
		part := e.Parts[name]
		if !part.Known || !part.Value.Answered { // whether it answers at all is seen by /healthz
			continue
		}
		code := HealthzFailing
		if name == "syncloop" {
			code = SyncLoopStuck
		}
		if old, seen := l[code]; !seen || !old.bad && !part.Value.OK { // the first that fails
			l.add(code, part.At, !part.Value.OK, "/healthz/%s says %s", name, part.Value.Text)
		}
	}
}

func observeLease(l look, e Evidence, s *State, now time.Time) {
	if !e.Lease.Known || s.APISince.IsZero() {
		return
	}
	lease := e.Lease.Value
	if !lease.Exists {
		// A kubelet that starts is not asked. If it is not known when it started, it gets that time now.
		late := e.Process.Known && e.Process.Value.startKnown(now) || now.Sub(s.APISince) > startGrace
		l.add(NotRegistered, e.Lease.At, late, "the node has no lease")
		return
	}
	l.add(NotRegistered, e.Lease.At, false, "the node has a lease")
	if lease.Foreign {
		return
	}
	duration := lease.Duration
	if duration <= 0 {
		duration = leaseDuration
	}
	late := s.leaseAge(e, now)
	l.add(LeaseStale, e.Lease.At, late > duration, "the lease was last renewed %s ago and counts for %s", text.Took(late), text.Took(duration))
	l.add(LeaseLate, e.Lease.At, late > duration*5/8, "the lease was last renewed %s ago, though it is renewed every %s", text.Took(late), text.Took(duration/4))
}

// leaseAge is how long the kubelet has had the opportunity to renew its lease and has not: the API
// server must have answered and the process must have run that long.
func (s *State) leaseAge(e Evidence, now time.Time) time.Duration {
	lease := e.Lease.Value
	age := now.Sub(s.APISince)
	if !lease.Seen.IsZero() {
		age = min(age, now.Sub(lease.Seen))
	}
	if lease.Seen.IsZero() || !lease.Renewed.After(now) { // else the clock was set back, and the age counted here decides
		age = min(age, now.Sub(lease.Renewed))
	}
	if p := e.Process; p.Known && p.Value.startKnown(now) {
		age = min(age, now.Sub(p.Value.Started))
	}
	return max(age, 0)
}

func observeWork(l look, e Evidence, now time.Time) {
	if p := e.PLEG; p.Known {
		if !p.Value.LastSeen.IsZero() {
			age := now.Sub(p.Value.LastSeen)
			l.add(PLEGStale, p.At, age > max(p.Value.Bound, plegBound), "the last relist of containers began %s ago", text.Took(age))
		}
		l.add(PLEGSlow, p.At, p.Value.Relist > relistBound, "a relist of containers takes %s", text.Took(p.Value.Relist))
	}
	if o := e.Operations; o.Known && o.Value.Count >= operationsFloor {
		l.add(RuntimeErrors, o.At, 2*o.Value.Errors > o.Value.Count, "%d of the kubelet's last %d requests to the runtime failed", o.Value.Errors, o.Value.Count)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Sources)) {
		s := e.Sources[name]
		if old, seen := l[SourceSilent]; s.Known && (!seen || !old.bad && !s.Value.OK) { // the first that is silent
			l.add(SourceSilent, s.At, !s.Value.OK, "nothing is heard from the %s: %s", name, s.Value.Text)
		}
	}
	if b := e.Behind; b.Known {
		v := b.Value
		l.add(StatusBehind, b.At, v.APIBehindKubelet > 0 && v.APIBehindKubeletOldest > behindBound,
			"%d statuses are not in the API, the oldest for %s", v.APIBehindKubelet, text.Took(v.APIBehindKubeletOldest))
		l.add(SyncBehind, b.At, v.KubeletBehindRuntime > 0 && v.KubeletBehindRuntimeOldest > behindBound,
			"%d containers have changed without the kubelet noticing, the oldest %s ago", v.KubeletBehindRuntime, text.Took(v.KubeletBehindRuntimeOldest))
	}
}

func observeCauses(l look, e Evidence, s *State, now time.Time) {
	if r := e.Runtime; r.Known {
		l.add(RuntimeDown, r.At, !r.Value.OK, "the container runtime is not ready: %s", r.Value.Text)
	}
	if r := e.Lists; r.Known {
		l.add(RuntimeHangs, r.At, !r.Value.OK, "the container runtime does not answer lists of containers: %s", r.Value.Text)
	}
	observeWrites(l, e, s)
	if a := e.APIServer; a.Known {
		l.add(APIServerUnreachable, a.At, !a.Value.OK, "the API server does not answer from here: %s", a.Value.Text)
	}
	if d := e.Disk; d.Known {
		text := fmt.Sprintf("%s and %d inodes are left", text.Bytes(d.Value.Free), d.Value.InodesFree)
		switch {
		case d.Value.ReadOnly:
			text = "it is read-only"
		case d.Value.Err != "":
			text = d.Value.Err
		}
		l.add(DiskFull, d.At, d.Value.Full(), "the disk of the kubelet's root cannot be written: %s", text)
	}
	if c := e.Certificate; c.Known {
		l.add(CertificateExpired, c.At, now.After(c.Value), "its client certificate expired at %s", c.Value.UTC().Format(time.RFC3339))
	}
}

// observeWrites adds whether the API server refuses writes: the kubelet's writes, by the kubelet's own count, or a dry run from here. An API
// server that accepts only reads, because of a webhook, a full etcd or a revoked right, keeps a working kubelet from renewing its lease.
func observeWrites(l look, e Evidence, s *State) {
	w, r := e.Writes, e.Requests
	switch {
	case r.Known && r.Value.Refused > 0 && r.Value.Accepted == 0:
		l.add(WritesRefused, r.At, true, "the API server refused all of the kubelet's last %d writes (%s)", r.Value.Refused, r.Value.Codes)
	case w.Known && !w.Value.OK:
		l.add(WritesRefused, w.At, true, "the API server refuses a write of the lease: %s", w.Value.Text)
	case w.Known:
		l.add(WritesRefused, w.At, false, "the API server accepts writes")
	case r.Known && r.Value.Accepted > 0:
		l.add(WritesRefused, r.At, false, "the API server accepts the kubelet's writes")
	case e.Lease.Known && e.Lease.Value.Seen.After(s.Signs[WritesRefused].Last): // no dry run is tried any more
		l.add(WritesRefused, e.Lease.At, false, "the lease is renewed")
	}
}
