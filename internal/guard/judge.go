package guard

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/text"
)

// Judge makes a verdict from the evidence of one look and the state of earlier looks. It is a pure
// function.
//
// One failed request never changes a verdict: a sign counts once it was observed several times over
// some time, and unknown facts never count. Of the signs that count, one proof makes the kubelet
// unhealthy, and so do two halves of different kinds. A sign that the lease contradicts makes it
// degraded at most. Causes outside the kubelet make it degraded, and the verdict says that a restart
// would not help.
func Judge(e Evidence, before State, now time.Time) (Verdict, State) {
	s := before.clone()
	s.remember(e, now)
	s.take(observe(e, &s, now), now)
	s.contradict(e, now)

	counting := s.counting()
	well := works(e, &s, now) && (before.Health == Healthy || renewed(e, now))
	v := Verdict{Health: s.weigh(counting), Reasons: []Reason{}}
	switch {
	case v.Health != Healthy:
	case isStarting(e, now) && !well:
		v.Health = Degraded
		v.Reasons = append(v.Reasons, Reason{Code: Starting, Message: startingWords(e, now), Since: e.Process.Value.Started})
	case well:
	case len(s.Signs) > 0 && before.Health == Healthy: // one bad observation does not change the verdict
	case len(s.Signs) > 0 && (before.Health == Degraded || before.Health == Unhealthy):
		v.Health = Degraded // what made it unhealthy before is over
		v.Reasons, v.pending = s.pending(), true
	default:
		v.Health = Unknown
		v.Reasons = append(v.Reasons, Reason{Code: TooLittleEvidence, Message: unknowns(e), Since: now})
	}
	for _, code := range counting {
		v.Reasons = append(v.Reasons, s.Signs[code].reason(code))
	}
	if before.Health == v.Health && !s.Since.IsZero() {
		v.Since = s.Since
	} else {
		v.Since = now
	}
	if v.Health == Unknown && before.Health == Unknown {
		v.Reasons[0].Since = v.Since
	}
	v.Helps, v.Do = s.advise(v)
	if v.Helps && isStarting(e, now) && !s.deadProcess() { // what counts is about the process before it
		v.Helps, v.Do = false, "give it time: it has started "+text.Took(now.Sub(e.Process.Value.Started))+" ago"
	}
	s.Health, s.Since = v.Health, v.Since
	return v, s
}

// counting returns the codes of the established signs, the heaviest first. Among signs of equal weight, signs of
// the process come first, since they explain the others: a dead kubelet does not renew its lease.
func (s *State) counting() []string {
	codes := slices.DeleteFunc(slices.Collect(maps.Keys(s.Signs)), func(code string) bool { return !s.Signs[code].established(rules[code]) })
	if slices.Contains(codes, LeaseStale) { // which says the same and more
		codes = slices.DeleteFunc(codes, func(code string) bool { return code == LeaseLate })
	}
	slices.SortFunc(codes, func(a, b string) int {
		if d := s.weight(b) - s.weight(a); d != 0 {
			return int(d)
		}
		if process := rules[a].kind == "process"; process != (rules[b].kind == "process") {
			if process {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return codes
}

// pending are the signs that do not count yet.
func (s *State) pending() []Reason {
	reasons := []Reason{}
	for _, code := range slices.Sorted(maps.Keys(s.Signs)) {
		reasons = append(reasons, s.Signs[code].reason(code))
	}
	return reasons
}

// weigh makes a health of the signs that count.
func (s *State) weigh(counting []string) Health {
	halves := map[string]bool{}
	for _, code := range counting {
		switch w := s.weight(code); {
		case s.Signs[code].Contradicted != "":
		case w == proof:
			return Unhealthy
		case w == half:
			halves[rules[code].kind] = true
		}
	}
	switch {
	case len(halves) > 1:
		return Unhealthy
	case len(counting) > 0:
		return Degraded
	}
	return Healthy
}

// works reports whether there is positive evidence that the kubelet works.
func works(e Evidence, s *State, now time.Time) bool {
	if e.Healthz.Known && e.Healthz.Value.OK {
		return true
	}
	lease, p := e.Lease, e.Process
	if p.Known && (p.Value.startKnown(now) && lease.Value.Renewed.Before(p.Value.Started) || !p.Value.Exists && p.Value.Sure) {
		return false // it is the lease of the process before
	}
	return lease.Known && lease.Value.Exists && !lease.Value.Foreign && now.Sub(lease.Value.Renewed) < leaseDuration && s.leaseAge(e, now) < leaseDuration
}

// renewed reports whether nothing says that this very process has not renewed the lease yet.
func renewed(e Evidence, now time.Time) bool {
	lease, p := e.Lease.Value, e.Process
	if !e.Lease.Known || !lease.Exists {
		return registered(e)
	}
	if !p.Known || !p.Value.startKnown(now) || lease.Foreign {
		return true
	}
	started := p.Value.Started.Add(-startJitter)
	return lease.Renewed.After(started) || lease.Seen.After(started.Add(2*startJitter))
}

// registered reports whether nothing says that the node has no lease. A kubelet makes one once its Node exists.
func registered(e Evidence) bool { return !e.Lease.Known || e.Lease.Value.Exists }

func startingWords(e Evidence, now time.Time) string {
	text := "it has started " + text.Took(now.Sub(e.Process.Value.Started)) + " ago"
	if !registered(e) {
		text += ", and the node has no lease yet"
	}
	return text
}

// unknowns is why there is too little evidence.
func unknowns(e Evidence) string {
	var why []string
	for _, u := range []struct{ name, why string }{
		{"process", e.Process.Why}, {"healthz", e.Healthz.Why}, {"lease", e.Lease.Why},
	} {
		if u.why != "" {
			why = append(why, u.name+": "+u.why)
		}
	}
	switch {
	case len(why) > 0:
	case !registered(e):
		return "the node has no lease yet"
	default:
		return "neither /healthz nor the lease was seen to be well yet"
	}
	return strings.Join(why, "; ")
}

func (s Sign) reason(code string) Reason {
	text := s.Text
	switch {
	case s.Contradicted != "":
		text += "; but " + s.Contradicted
	case s.Beside != "":
		text += "; " + s.Beside
	}
	return Reason{Code: code, Message: text, Since: s.Since}
}

// obstacles are the causes that keep a restart from helping, the most certain first, and what would
// help. A process that is gone or stopped is started all the same where dead is true, unless it ends each time: it
// runs pods without an API server, and frees disk.
var obstacles = []struct {
	code string
	dead bool
	do   string
}{
	{CertificateExpired, false, "renew its client certificate"},
	{RuntimeDown, false, "restart the container runtime"},
	{RuntimeHangs, true, "restart the container runtime"},
	{RuntimeErrors, true, "restart the container runtime"},
	{DiskFull, true, "free space on the disk of the kubelet's root"},
	{CrashLooping, false, "read the kubelet's last log lines: it ends by itself each time it is started"},
	{APIServerUnreachable, true, "bring back the API server, or the way to it"},
	{WritesRefused, true, doWrites},
}

// doWrites is what helps a kubelet that works and whose writes the API server does not accept.
const doWrites = "find out why the API server does not accept the kubelet's writes: admission webhooks, the space of etcd, the rights of the kubelet"

// advise is whether a restart would help, and else what would.
func (s *State) advise(v Verdict) (helps bool, do string) {
	if v.Health != Unhealthy && v.Health != Degraded {
		return false, ""
	}
	loop, looping := s.Signs[CrashLooping]
	dead := s.deadProcess() && !(looping && loop.Good == 0)
	for _, o := range obstacles {
		// One observation is enough to hold a restart back.
		sign, open := s.Signs[o.code]
		if open && sign.Good == 0 && !(dead && o.dead) {
			return false, o.do + ": " + sign.Text
		}
	}
	if sign, open := s.Signs[LeaseStale]; open && v.Health == Degraded && sign.established(rules[LeaseStale]) {
		if s.LeaseTried.IsZero() {
			return false, doWrites
		}
		return false, "read the kubelet's last log lines: the restart at " + s.LeaseTried.UTC().Format(time.RFC3339) + " brought no renewal of the lease; " + doWrites
	}
	return v.Health == Unhealthy, ""
}

func (s *State) deadProcess() bool {
	for _, code := range []string{ProcessGone, ProcessStopped} {
		if sign, open := s.Signs[code]; open && sign.established(rules[code]) && sign.Contradicted == "" {
			return true
		}
	}
	return false
}
