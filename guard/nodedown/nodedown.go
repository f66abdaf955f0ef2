package nodedown

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/shutdown"
)

// Options configure a [Watch]. Host, Stop and Start are required.
type Options struct {
	// Host announces shutdowns and delays them: logind.
	Host shutdown.Host
	// Say reports the Node as not ready. It is called when the shutdown begins, beside the rest, and once more
	// when the kubelet is stopped, which may have overwritten it until then. Nil: nothing is reported.
	Say func(ctx context.Context) error
	// Stop stops the kubelet and what it needs, in order; Start undoes it.
	Stop, Start func(ctx context.Context) error
	// Grace is how long the kubelet ends pods by its own configuration; it is stopped after that.
	Grace time.Duration
	// Logger defaults to one that discards everything.
	Logger *slog.Logger
}

// startTimeout is how long the start of a kubelet may take after a shutdown that did not take place.
const startTimeout = 3 * time.Minute

// retries space the tries to reach a host that cannot be heard.
var retries = backoff.Schedule{First: time.Second, Limit: time.Minute}

var errLost = errors.New("nodedown: the host of shutdowns cannot be heard any more")

// Watch follows the shutdowns of a machine.
type Watch struct {
	o     Options
	under atomic.Bool
}

// New makes a watch. It starts nothing.
func New(o Options) *Watch {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Say == nil {
		o.Say = func(context.Context) error { return nil }
	}
	return &Watch{o: o}
}

// Under reports whether the machine shuts down now.
func (w *Watch) Under() bool { return w.under.Load() }

// Run follows the host until ctx ends. A host that cannot be heard is tried again.
func (w *Watch) Run(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		heard, err := w.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if heard {
			attempt = 1
		}
		if attempt == 1 { // and not again each minute on a machine that has no logind
			w.o.Logger.Info("shutdowns of this machine are not announced", "err", err)
		}
		if !backoff.Sleep(ctx, retries.Random(attempt)) {
			return nil
		}
	}
}

// follow delays shutdowns and acts on announcements until the host cannot be heard any more.
func (w *Watch) follow(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	announcements, err := w.o.Host.Announcements(ctx)
	if err != nil {
		return false, err
	}
	defer func() { // nothing of the host runs on
		cancel()
		for range announcements {
		}
	}()
	atMost, release, err := w.o.Host.Delay(ctx)
	if err != nil {
		return false, err
	}
	defer func() { release() }()
	var r *round
	defer func() { r.end() }()
	for {
		select {
		case begins, open := <-announcements:
			switch {
			case !open:
				return true, errLost
			case begins && r == nil:
				r = w.begin(ctx, atMost)
			case !begins && r != nil:
				w.undo(ctx, r)
				r = nil
				release() // if it was not: two locks would be one too many
				if atMost, release, err = w.o.Host.Delay(ctx); err != nil {
					release = func() {}
					return true, err
				}
			}
		case <-r.finished():
			release()
			r.done = nil
		}
	}
}

// round is one shutdown. A nil one is none.
type round struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	done    chan struct{} // closed when the shutdown may go on
}

func (r *round) finished() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.done
}

// end ends what is left of a round and waits for it.
func (r *round) end() {
	if r != nil {
		r.cancel()
		r.running.Wait()
	}
}

// begin starts a round that ends before the host goes on without it.
func (w *Watch) begin(ctx context.Context, atMost time.Duration) *round {
	w.under.Store(true)
	ctx, cancel := context.WithTimeout(ctx, atMost-min(time.Second, atMost/10))
	r := &round{cancel: cancel, done: make(chan struct{})}
	done := r.done
	w.o.Logger.Info("the machine shuts down", "grace", w.o.Grace, "within", atMost)
	r.running.Go(func() {
		defer close(done)
		w.run(ctx)
	})
	return r
}

// run is one shutdown. The Node is reported beside the rest: an API server that does not answer must not use up the
// time of the kubelet.
func (w *Watch) run(ctx context.Context) {
	begin := time.Now()
	var saying sync.WaitGroup
	saying.Go(func() { w.say(ctx) })
	if w.o.Grace > 0 && !backoff.Sleep(ctx, w.o.Grace) {
		w.o.Logger.Warn("the machine goes down before the kubelet's shutdownGracePeriod is over; raise InhibitDelayMaxSec of logind", "grace", w.o.Grace)
	}
	if err := w.o.Stop(ctx); err != nil {
		w.o.Logger.Warn("kubelet not stopped in order", "err", err)
	}
	saying.Wait()
	w.say(ctx)
	w.o.Logger.Info("the shutdown may go on", "took", time.Since(begin).Round(time.Millisecond))
}

func (w *Watch) say(ctx context.Context) {
	if err := w.o.Say(ctx); err != nil {
		w.o.Logger.Warn("the node is not reported as shutting down", "err", err)
	}
}

// undo ends a round and starts the kubelet again.
func (w *Watch) undo(ctx context.Context, r *round) {
	r.end()
	w.o.Logger.Info("the shutdown is canceled, the kubelet is started")
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := w.o.Start(limited); err != nil {
		w.o.Logger.Warn("kubelet not started after a shutdown that was canceled", "err", err)
	}
	w.under.Store(false)
}
