package status

import (
	"math"
	"time"
)

// limit finds the number of requests in flight beyond which the throughput does not grow. It is a
// plain value; the time is passed in.
//
// By Little's law n requests in flight that take t each are n/t per second. If they would take base
// on an idle server, n·base/t of them are being worked on or on their way, and the rest waits in a
// queue of the server, which makes every request slower. So the best limit is
//
//	n·base/t + queue
//
// with a queue just long enough to keep the server busy. As long as more requests give more
// throughput, t stays near base and the limit grows by the queue in each round trip, or doubles at
// the beginning; once only t grows, the limit falls until the queue has the wanted length.
//
// Base is the mean, not the minimum, duration of requests to an idle server, so that a link with
// jitter does not look like a busy server. Such requests occur whenever there is little to do.
// Under lasting load, the limit dips from time to time to measure base (like BBR's probes of the
// round-trip time).
type limit struct {
	floor, first, ceiling float64
	current               float64
	// wide: throughput counts and latency does not.
	wide bool
	// latency is the recent duration of requests and base their duration on an idle server, in
	// seconds; zero until measured.
	latency, base float64
	// climbing: the limit doubles with each round trip, until requests take longer for it.
	climbing bool
	// dip is how many quiet samples are missing, until when at the latest; zero if there is no dip.
	dip      int
	dipUntil time.Time
	// quiet is when base was last measured, used when the limit was last in use, answered when
	// a request was last answered, and shrunk when the limit was last cut.
	quiet, used, answered, shrunk time.Time
	// refused is when the server last refused work, and tooMany the limit then.
	refused time.Time
	tooMany float64
}

const (
	// limitFloor is the minimum limit, whatever the server does.
	limitFloor = 4
	// limitFirst is where the search begins, unless the way to the server is long.
	limitFirst = 8
	limitRate  = 600
	farthest   = 0.3
	// limitQueue is how many requests may wait in the server: enough to keep it busy after a short
	// stall; each further request makes all requests slower.
	limitQueue = 3
	// limitNoise is how much slower requests may become for no reason.
	limitNoise = 1.1
	// quietFlights is how many requests in flight still leave a server idle.
	quietFlights = 2
	// jitterRange is how many times the duration of any request base may be, whatever the jitter: a base beyond that is that of
	// a busy server, or of a request that has waited for its connection.
	jitterRange = 2
	// dipEvery is how long base is trusted under load, dipSamples how many requests measure it.
	dipEvery   = 30 * time.Second
	dipSamples = 4
	// cautious is how long the limit stays below what the server has refused.
	cautious = 30 * time.Second
	// forgetAfter is how long an unused limit is kept; half of what it differs from the
	// first one is then forgotten in each such time.
	forgetAfter = time.Minute
)

// newLimit returns a limit up to a ceiling. A wide one is at its ceiling unless the server refuses work or does not answer.
func newLimit(ceiling int, wide bool, now time.Time) *limit {
	top := float64(ceiling)
	first := min(limitFirst, top)
	if wide {
		first = top
	}
	return &limit{floor: min(limitFloor, top), first: first, ceiling: top, current: first, wide: wide,
		climbing: !wide, quiet: now, used: now, answered: now}
}

// allowed is how many requests may be in flight.
func (l *limit) allowed() int {
	if l.dip > 0 {
		return int(min(quietFlights, l.floor))
	}
	return int(l.current)
}

// sample takes in how long a request took that was begun as one of so many in flight. Full
// means that the limit was in use: else the sample does not show whether more would pay.
func (l *limit) sample(now time.Time, took time.Duration, among int, full bool) {
	l.answered = now
	l.observe(now, took, among, full)
}

// hang takes in that a request has had no answer for so long.
func (l *limit) hang(now time.Time, took time.Duration) {
	l.observe(now, took, math.MaxInt, true) // no measure of an idle server
}

func (l *limit) observe(now time.Time, took time.Duration, among int, full bool) {
	l.pass(now)
	seconds := max(took.Seconds(), 1e-6)
	if l.base == 0 {
		l.base, l.latency = seconds, seconds
	}
	l.latency += (seconds - l.latency) / max(4, l.current)
	l.measureBase(now, seconds, among)
	if !full || l.dip > 0 {
		return
	}
	l.used = now
	if l.wide {
		l.widen(now)
		return
	}
	waiting := l.current * max(0, 1-limitNoise*l.base/l.latency)
	l.climbing = l.climbing && waiting <= 2*l.queue() && l.latency <= 2*l.base
	grow := 0.0
	switch {
	case l.climbing && seconds <= 2*l.base:
		grow = 1
	case !l.climbing:
		// One round trip has as many samples as there are requests in flight.
		grow = (l.queue() - waiting) / l.current
	}
	if now.Sub(l.refused) < cautious {
		grow = min(grow, 0.9*l.tooMany-l.current)
	}
	l.set(l.current + grow)
	if now.Sub(l.quiet) > dipEvery {
		l.dip, l.dipUntil = dipSamples, now.Add(time.Second+time.Duration(4*l.latency*float64(time.Second)))
	}
}

// dipEnds is when a dip ends at the latest, or zero.
func (l *limit) dipEnds() time.Time {
	if l.dip == 0 {
		return time.Time{}
	}
	return l.dipUntil
}

// queue is how many requests may wait in the server: over a long way more, since it takes longer to find more work.
func (l *limit) queue() float64 { return limitQueue + l.current/16 }

// widen goes back towards the ceiling after the server has refused work, by one with each answer.
func (l *limit) widen(now time.Time) {
	most := l.ceiling
	if now.Sub(l.refused) < cautious {
		most = min(most, max(0.9*l.tooMany, l.current))
	}
	l.set(min(l.current+1, most))
}

// measureBase follows what requests take on an idle server.
func (l *limit) measureBase(now time.Time, seconds float64, among int) {
	if among <= quietFlights {
		l.quiet = now
		weight := 1.0 / 8
		if l.dip > 0 {
			l.dip, weight = l.dip-1, 1.0/2 // these few must do
		}
		l.base += (seconds - l.base) * weight
	}
	l.base = min(l.base, jitterRange*seconds)
	if l.dip == 0 {
		l.base = min(l.base, l.latency)
	}
	if l.climbing {
		l.set(max(l.current, l.start()))
	}
}

// overload takes in that the server refuses work.
func (l *limit) overload(now time.Time) {
	if current := l.current; l.shrink(now) {
		l.refused, l.tooMany = now, current
	}
}

// timeout takes in that a request begun at a certain time got no answer. It counts
// of the server only if no other request was answered meanwhile.
func (l *limit) timeout(began, now time.Time) {
	if l.answered.Before(began) {
		l.shrink(now)
	}
}

// shrink reports whether the limit has become less: what was under way when it did has the
// same to say, and counts once.
func (l *limit) shrink(now time.Time) bool {
	if now.Sub(l.shrunk).Seconds() < max(l.latency, 0.1) {
		return false
	}
	l.shrunk, l.used, l.climbing = now, now, false
	l.set(0.7 * l.current)
	return true
}

// pass takes in that time has passed. A limit that is not in use goes back to where the search
// begins, and a dip ends, so that requests which hang do not keep the limit down.
func (l *limit) pass(now time.Time) {
	if l.dip > 0 && !now.Before(l.dipUntil) {
		l.dip, l.quiet = 0, now
	}
	idle := now.Sub(l.used)
	if idle < forgetAfter {
		return
	}
	l.used, l.climbing = now, !l.wide
	l.set(l.start() + (l.current-l.start())*math.Exp2(-float64(idle)/float64(forgetAfter)))
}

// start is where the search begins: over a long way as many as keep a server busy that serves
// limitRate requests per second. A base that is longer than any way is that of a slow server.
func (l *limit) start() float64 {
	if l.base > farthest {
		return l.first
	}
	return max(l.first, min(limitRate*l.base, l.ceiling))
}

func (l *limit) set(n float64) { l.current = min(max(n, l.floor), l.ceiling) }
