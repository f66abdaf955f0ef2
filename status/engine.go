package status

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/instant"
	"github.com/statusd/statusd/internal/wake"
)

// engine starts the turns of pods: the most urgent first, at most one at a time per pod, no more at
// once than increase the throughput, and no more per second than the budget allows.
//
// One goroutine, run, owns the queue, the limit and the budget. Each turn has its own goroutine
// that ends with an outcome. Reporters add requests to the inbox and never wait.
type engine struct {
	engineConfig
	inbox    inbox
	outcomes chan outcome // unbuffered: the owner receives until every turn has ended
}

type engineConfig struct {
	workers int
	wide    bool // throughput counts more than latency
	slow    time.Duration
	resync  time.Duration
	qps     float64
	burst   int
	turn    func(ctx context.Context, uid types.UID, alone bool) outcome
	pass    func() []turnRequest
	nextTry func(uid types.UID, at time.Time) // a pod is tried earlier than its turn has said
	metrics *metrics
	shareOf func(types.UID) string // nil: there is one share
}

func newEngine(config engineConfig) *engine {
	return &engine{
		engineConfig: config,
		inbox:        inbox{wake: make(chan struct{}, 1), index: make(map[types.UID]int)},
		outcomes:     make(chan outcome),
	}
}

// changed asks for a turn. It never blocks, and may be called before run.
func (e *engine) changed(n turnRequest) { e.inbox.add(n) }

// run serves until the context ends and all turns have ended with it.
func (e *engine) run(ctx context.Context) {
	now := time.Now()
	o := &owner{
		engine: e,
		queue:  newQueue(),
		limit:  newLimit(e.workers, e.wide, now),
		budget: newBudget(e.qps, e.burst, now),
		timer:  time.NewTimer(0),
		slots:  slots{byPod: make(map[types.UID]*activeTurn)},
	}
	o.queue.shareBy(e.shareOf)
	defer o.timer.Stop()
	resync := time.NewTicker(e.resync)
	defer resync.Stop()
	for {
		o.dispatch(ctx, time.Now())
		select {
		case <-ctx.Done():
			for range o.inFlight() {
				<-e.outcomes
			}
			return
		case <-e.inbox.wake:
			o.read(e.inbox.drain(), time.Now())
		case out := <-e.outcomes:
			o.finish(out, time.Now())
		case <-resync.C:
			o.read(e.pass(), time.Now())
		case <-o.timer.C:
		}
	}
}

// owner is the state of the goroutine that starts turns. No other goroutine accesses it.
type owner struct {
	*engine
	queue  *queue
	limit  *limit
	health health
	budget *budget
	timer  *time.Timer
	slots

	// throttledSince is when work began to wait for budget or pause.
	throttledSince time.Time
	// probes counts the turns in pauses and the like: every other one is of the newest pod.
	probes int
}

// read queues the requests of reporters and observers.
func (o *owner) read(requests []turnRequest, now time.Time) {
	for _, n := range requests {
		if n.expedite {
			o.queue.expedite(n.uid, n.urgency, n.at)
			continue
		}
		o.queue.add(n.uid, n.urgency, n.at)
		if n.urgency <= start { // also of a pod that has failed with a status that was less urgent
			o.queue.jobs[n.uid].grave = true
		}
		if n.urgency == withdrawal && (o.queue.serving(n.uid) || o.health.worthATry(now)) {
			o.queue.hurry(n.uid, now)
		}
		if n.stored {
			o.queue.renew(n.uid, now)
		}
	}
}

// dispatch starts turns for as long as there is a slot, a pod that need not wait and a token. It
// then sets the timer to the next time without a wake-up.
func (o *owner) dispatch(ctx context.Context, now time.Time) {
	o.freeSlow(now)
	o.limit.pass(now)
	o.probe(now)
	var throttled time.Time // until when
	for {
		u, ok, until := o.choose(now)
		if !ok {
			throttled = until
			break
		}
		j := o.take(u, now)
		o.metrics.queued[u].Observe(now.Sub(j.since).Seconds())
		o.begin(j, now, o.limit.allowed())
		o.byPod[j.uid].tried, o.health.tried = o.health.tried, now
		alone := j.suspect && !o.health.failsAll
		go func() { o.outcomes <- o.turn(ctx, j.uid, alone) }()
	}
	o.metrics.limit.Set(float64(o.limit.allowed()))
	o.metrics.inFlight.Set(float64(o.inFlight()))
	o.countThrottled(!throttled.IsZero(), now)
	o.setTimer(throttled, now)
}

// take returns the next pod of the class. While the server refuses or hangs, possibly only for the pods that have waited
// longest, every other pod taken is the newest.
func (o *owner) take(u urgency, now time.Time) *job {
	if !o.health.paused(now) && !o.health.refusing && o.hanging < manyHanging {
		return o.queue.take(u, now)
	}
	o.probes++
	if o.probes%2 == 1 {
		return o.queue.takeNewest(u, now)
	}
	return o.queue.take(u, now)
}

// choose returns the class to serve next, and takes a token. If no class may be served although
// there is work and a slot, choose returns until when.
func (o *owner) choose(now time.Time) (u urgency, ok bool, until time.Time) {
	o.queue.promote(now)
	o.queue.park(o.limit.allowed())
	u, overdue, ok := o.queue.turn(now)
	if !ok {
		return 0, false, time.Time{}
	}
	if !o.hasSlot(o.limit.allowed()) {
		// The slots kept for withdrawals are not part of what the classes share.
		if !o.queue.has(withdrawal, now) || !o.hasReserved() {
			return 0, false, time.Time{}
		}
		u, overdue = withdrawal, false
	}
	if opens := o.health.opens(now); opens.After(now) {
		return 0, false, opens
	}
	// A class that has waited for its share has a right to the token, reserve or not.
	urgent := u == withdrawal || overdue
	if !o.budget.take(now, urgent) {
		return 0, false, o.budget.when(now, urgent)
	}
	return u, true, time.Time{}
}

// probe makes a pod ready from time to time while the server is unreachable or asks for a pause,
// although all pods back off: the first success releases the others.
func (o *owner) probe(now time.Time) {
	if at := o.probeAt(now); at.IsZero() || at.After(now) {
		return
	}
	if _, _, ready := o.queue.turn(now); !ready {
		o.queue.hasten(now)
		o.health.tried = now
	}
}

// probeAt returns when a probe is due, zero if none will be.
func (o *owner) probeAt(now time.Time) time.Time {
	if !o.health.paused(now) && !o.health.failing || o.queue.waiting.Len() == 0 || !o.hasSlot(o.limit.allowed()) {
		return time.Time{}
	}
	return o.health.probeAt()
}

// finish takes in the outcome of a turn.
func (o *owner) finish(out outcome, now time.Time) {
	full := !o.hasSlot(o.limit.allowed())
	f := o.end(out.uid)
	o.queue.ended(f.share, f.slow, out.succeeded)
	if out.requests == 0 && o.health.tried.Equal(f.since) {
		o.health.tried = f.tried // a turn without a request is no probe
	}
	o.budget.charge(out.requests)
	o.blame(&out, now)
	switch {
	case out.failure == overloaded:
		o.limit.overload(now)
	case out.failure == timedOut:
		o.limit.timeout(f.since, now)
	case out.succeeded && !f.slow:
		o.limit.sample(now, out.latency, f.among, full)
	}
	recovered := o.health.record(out, f.since, now)
	o.queue.backgroundFrom, o.queue.pausedUntil = o.health.backgroundFrom(), o.health.pausedUntil
	switch {
	case out.again && out.wait > 0:
		server := out.failure.ofServer()
		if out.grave && o.hurries(&out, now) {
			out.wait = max(min(out.wait, graveWait), out.pause, out.asked)
			o.nextTry(out.uid, now.Add(out.wait))
		}
		o.queue.retry(out.uid, out.urgency, now, now.Add(out.wait), server)
		if j, queued := o.queue.jobs[out.uid]; queued {
			j.deletes, j.refused, j.grave = out.deletes, out.refusal || out.failure == internal, out.grave
			if j.renewed {
				o.queue.renew(out.uid, now)
			}
			if j.hurried {
				o.queue.hurry(out.uid, now)
			}
		}
		// The cause of a failed request that began before the recovery is gone.
		if server && f.since.Before(o.health.succeeded) {
			recovered = true
		}
	case out.again:
		o.queue.add(out.uid, out.urgency, now)
		o.queue.done(out.uid)
	default:
		o.queue.done(out.uid)
	}
	if recovered {
		o.queue.release(now, recoverySpread)
	}
}

// hurries reports whether a pod whose readiness or phase is wrong in the API is retried soon: the server serves other pods, or
// answers for this pod, which then is not a probe of the server, and has not failed with this pod for long.
func (o *owner) hurries(out *outcome, now time.Time) bool {
	j := o.queue.jobs[out.uid]
	if !out.lasting {
		j.lastingSince = time.Time{}
	} else if j.lastingSince.IsZero() {
		j.lastingSince = now
	}
	answers := out.failure == refused || out.failure.ofEither()
	return (answers || !o.health.failing) && (j.lastingSince.IsZero() || now.Sub(j.lastingSince) < graveFor)
}

// blame decides whether the server or the pod has caused a failure that either could have caused.
func (o *owner) blame(out *outcome, now time.Time) {
	j := o.queue.jobs[out.uid]
	j.suspect = out.failure.ofEither()
	throttled := j.throttled
	j.throttled = time.Time{}
	switch {
	case out.failure == overloaded:
		j.throttled = now
		if o.health.singlesOut(throttled, now) {
			out.failure, out.asked, out.pause = refused, out.pause, 0
		}
	case j.suspect && !out.deletes && o.health.suspect(out.uid, out.failure):
		out.failure = away
		o.queue.blameServer()
	}
}

// freeSlow frees the slots of turns that take too long, so that pods whose requests hang do not
// block other pods.
func (o *owner) freeSlow(now time.Time) {
	for f := o.oldest(); f != nil && now.Sub(f.since) >= o.slow && o.maySlow(o.limit.allowed()); f = o.oldest() {
		o.limit.hang(now, now.Sub(f.since))
		o.free(f)
	}
}

// setTimer wakes the owner at the earliest time at which something can happen by itself.
func (o *owner) setTimer(throttled, now time.Time) {
	at := throttled
	allowed := o.limit.allowed()
	if at.IsZero() && o.hasSlot(allowed) {
		at = instant.Earlier(o.queue.next(now), o.probeAt(now))
	}
	if f := o.oldest(); f != nil && !o.hasSlot(allowed) && o.maySlow(allowed) {
		at = instant.Earlier(at, f.since.Add(o.slow))
	}
	if len(o.queue.jobs) > o.inFlight() {
		at = instant.Earlier(at, o.limit.dipEnds())
	}
	if at.IsZero() {
		o.timer.Stop()
		return
	}
	o.timer.Reset(at.Sub(now))
}

func (o *owner) countThrottled(throttled bool, now time.Time) {
	if !o.throttledSince.IsZero() {
		o.metrics.throttled.Add(now.Sub(o.throttledSince).Seconds())
	}
	o.throttledSince = time.Time{}
	if throttled {
		o.throttledSince = now
	}
}

// turnRequest requests a turn for a pod.
type turnRequest struct {
	uid     types.UID
	urgency urgency
	at      time.Time
	// expedite: an observation or report ends the pod's back-off. Stored: another status was
	// stored.
	expedite bool
	stored   bool
}

// burst is the number of queued pods above which memory is freed afterwards.
const burst = 1024

// inbox holds the requests that the owner has not seen, at most one per pod.
type inbox struct {
	wake chan struct{} // capacity 1: one wake-up stands for any number of requests

	// mu guards requests and index.
	mu       sync.Mutex
	requests []turnRequest
	index    map[types.UID]int
}

func (b *inbox) add(n turnRequest) {
	b.mu.Lock()
	if i, ok := b.index[n.uid]; ok {
		old := &b.requests[i]
		old.urgency = min(old.urgency, n.urgency)
		old.expedite = old.expedite || n.expedite
		old.stored = old.stored || n.stored
	} else {
		b.index[n.uid] = len(b.requests)
		b.requests = append(b.requests, n)
	}
	b.mu.Unlock()
	wake.Up(b.wake)
}

func (b *inbox) drain() []turnRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	requests := b.requests
	b.requests = nil
	if len(requests) > burst {
		b.index = make(map[types.UID]int)
	}
	clear(b.index)
	return requests
}
