package status

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// engine gives pods their turns: the most urgent first, at most one at a time for a pod,
// no more at once than workers, and no more in a second than the budget allows.
//
// One goroutine, that of run, owns the queue and the budget. Each turn has a goroutine of
// its own that ends with an outcome. Reporters leave notes in the inbox and never wait.
type engine struct {
	engineConfig
	inbox    inbox
	outcomes chan outcome // unbuffered: the owner receives until every turn has ended
}

type engineConfig struct {
	workers int
	slow    time.Duration
	resync  time.Duration
	qps     float64
	burst   int
	turn    func(context.Context, types.UID) outcome
	pass    func() []note
	metrics *metrics
}

func newEngine(config engineConfig) *engine {
	return &engine{
		engineConfig: config,
		inbox:        inbox{wake: make(chan struct{}, 1), index: make(map[types.UID]int)},
		outcomes:     make(chan outcome),
	}
}

// changed asks for a turn. It never blocks, and may be called before run.
func (e *engine) changed(n note) { e.inbox.leave(n) }

// run serves until the context ends and all turns have ended with it.
func (e *engine) run(ctx context.Context) {
	now := time.Now()
	o := &owner{
		engine: e,
		queue:  newQueue(),
		budget: newBudget(e.qps, e.burst, now),
		timer:  time.NewTimer(0),
	}
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
			o.read(e.inbox.empty())
		case out := <-e.outcomes:
			o.finish(out, time.Now())
		case <-resync.C:
			o.read(e.pass())
		case <-o.timer.C:
		}
	}
}

// owner is the state of the goroutine that gives out turns. Nobody else touches it.
type owner struct {
	*engine
	queue  *queue
	budget *budget
	timer  *time.Timer

	// flights are the turns in progress, oldest first; those that have landed stay in the
	// list until they are the oldest.
	flights []*flight
	byPod   map[types.UID]*flight
	// busy counts the flights that are neither landed nor slow.
	busy int

	// pausedUntil and backgroundFrom hold all work, and background work, back after the
	// API server has asked for that.
	pausedUntil    time.Time
	backgroundFrom time.Time
	// throttledSince is when work began to wait for budget or pause.
	throttledSince time.Time
}

// flight is a turn in progress.
type flight struct {
	since        time.Time
	slow, landed bool
}

func (o *owner) inFlight() int { return len(o.byPod) }

// read queues what reporters and observers have asked for.
func (o *owner) read(notes []note) {
	for _, n := range notes {
		if n.expedite {
			o.queue.expedite(n.uid, n.urgency, n.at)
		} else {
			o.queue.add(n.uid, n.urgency, n.at)
		}
	}
}

// dispatch starts turns for as long as there is a free worker, a pod that need not wait
// and a token, in this order of asking: a token taken is a token used. It then sets the
// timer to when it should look again without being woken.
func (o *owner) dispatch(ctx context.Context, now time.Time) {
	o.releaseSlow(now)
	throttled := time.Time{} // until when
	for o.busy < o.workers && !o.queue.next(now).IsZero() && !o.queue.next(now).After(now) {
		if now.Before(o.pausedUntil) {
			throttled = o.pausedUntil
			break
		}
		if !o.budget.take(now) {
			throttled = o.budget.when(now)
			break
		}
		uid, ok := o.queue.take(now, o.backgroundFrom)
		if !ok {
			o.budget.charge(0)
			break
		}
		o.launch(ctx, uid, now)
	}
	o.countThrottled(!throttled.IsZero(), now)
	o.setTimer(throttled, now)
}

func (o *owner) launch(ctx context.Context, uid types.UID, now time.Time) {
	if o.byPod == nil {
		o.byPod = make(map[types.UID]*flight)
	}
	f := &flight{since: now}
	o.byPod[uid] = f
	o.flights = append(o.flights, f)
	o.busy++
	go func() { o.outcomes <- o.turn(ctx, uid) }()
}

// finish takes in the outcome of a turn.
func (o *owner) finish(out outcome, now time.Time) {
	f := o.byPod[out.uid]
	delete(o.byPod, out.uid)
	f.landed = true
	if !f.slow {
		o.busy--
	}
	o.budget.charge(out.requests)
	if out.pause > 0 {
		// Everyone leaves the server alone for as long as it asked, background work twice as long.
		o.pausedUntil = later(o.pausedUntil, now.Add(out.pause))
		o.backgroundFrom = later(o.backgroundFrom, now.Add(2*out.pause))
	}
	switch {
	case out.again && out.wait > 0:
		o.queue.retry(out.uid, out.urgency, now.Add(out.wait))
	case out.again:
		o.queue.add(out.uid, out.urgency, now)
		o.queue.done(out.uid)
	default:
		o.queue.done(out.uid)
	}
}

// releaseSlow frees the workers of turns that take too long, so that pods whose requests
// hang do not keep others from being served.
func (o *owner) releaseSlow(now time.Time) {
	for len(o.flights) > 0 {
		f := o.flights[0]
		if !f.landed && now.Sub(f.since) < o.slow {
			return
		}
		if !f.landed {
			o.release(f)
		}
		o.flights = o.flights[1:]
	}
}

func (o *owner) release(f *flight) {
	f.slow = true
	o.busy--
}

// setTimer wakes the owner at the earliest time at which something can happen by itself.
func (o *owner) setTimer(throttled, now time.Time) {
	at := throttled
	if at.IsZero() && o.busy < o.workers {
		at = o.queue.next(now)
	}
	if o.busy >= o.workers && len(o.flights) > 0 {
		if slow := o.flights[0].since.Add(o.slow); at.IsZero() || slow.Before(at) {
			at = slow
		}
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

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// note asks for a turn for a pod.
type note struct {
	uid     types.UID
	urgency urgency
	at      time.Time
	// expedite: there is news of the pod that ends its backoff.
	expedite bool
}

// burst is how many pods at once make it worth to give the memory back afterwards.
const burst = 1024

// inbox is where notes wait for the owner, one for each pod at most.
type inbox struct {
	wake chan struct{} // capacity 1: one wake-up stands for any number of notes

	// mu guards notes and index.
	mu    sync.Mutex
	notes []note
	index map[types.UID]int
}

func (b *inbox) leave(n note) {
	b.mu.Lock()
	if i, ok := b.index[n.uid]; ok {
		old := &b.notes[i]
		old.urgency = min(old.urgency, n.urgency)
		old.expedite = old.expedite || n.expedite
	} else {
		b.index[n.uid] = len(b.notes)
		b.notes = append(b.notes, n)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *inbox) empty() []note {
	b.mu.Lock()
	defer b.mu.Unlock()
	notes := b.notes
	b.notes = nil
	if len(notes) > burst {
		b.index = make(map[types.UID]int)
	}
	clear(b.index)
	return notes
}
