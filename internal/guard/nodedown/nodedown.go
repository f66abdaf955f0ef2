package nodedown

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/node/shutdown"
)

// Options configure a [Watch]. Host, Stop and Start are required.
type Options struct {
	// Host announces shutdowns and delays them: logind.
	Host shutdown.Host
	// Say reports the Node as not ready. It is called when the shutdown begins, beside the rest, and once more
	// when the kubelet is stopped, which may have overwritten it until then. Nil: nothing is reported.
	Say func(ctx context.Context) error
	// Stop stops the kubelet and its dependencies, in order; Start starts them again.
	Stop, Start func(ctx context.Context) error
	// Runs reports whether the kubelet runs, or is about to run. It is called when a shutdown begins: a kubelet that did not run is not
	// started after a canceled shutdown. Nil: it runs.
	Runs func(ctx context.Context) bool
	// Grace is how long the kubelet ends pods by its own configuration; it is stopped after that.
	Grace time.Duration
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// startTimeout is how long the start of a kubelet may take after a shutdown that did not take place.
const startTimeout = 3 * time.Minute

// Watch follows the shutdowns of a machine.
type Watch struct {
	o     Options
	under atomic.Bool
	// down is the shutdown in progress, up the start after a canceled shutdown. Only Run uses them; they may be nil.
	down, up *task
	ran      atomic.Bool // when the shutdown began
}

// New makes a watch. New starts nothing.
func New(o Options) *Watch {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Say == nil {
		o.Say = func(context.Context) error { return nil }
	}
	if o.Runs == nil {
		o.Runs = func(context.Context) bool { return true }
	}
	return &Watch{o: o}
}

// Under reports whether the machine shuts down now.
func (w *Watch) Under() bool { return w.under.Load() }

// Run follows the host until ctx ends, and reconnects to an unreachable host. Run may be called once.
func (w *Watch) Run(ctx context.Context) error {
	shutdown.Follow(ctx, w.o.Host, shutdown.Listener{
		Begin:  func(atMost time.Duration) <-chan struct{} { return w.begin(ctx, atMost) },
		Cancel: func() { w.undo(ctx) },
	}, w.o.Logger)
	w.down.end()
	w.up.end()
	return nil
}

// task is something that goes on beside the announcements.
type task struct {
	cancel context.CancelFunc
	done   chan struct{} // closed at its end
}

func begin(ctx context.Context, within time.Duration, what func(context.Context)) *task {
	ctx, cancel := context.WithTimeout(ctx, within)
	t := &task{cancel, make(chan struct{})}
	go func() {
		defer close(t.done)
		defer cancel()
		what(ctx)
	}()
	return t
}

// end cancels the rest of a task and waits for it.
func (t *task) end() {
	if t != nil {
		t.cancel()
		<-t.done
	}
}

// begin begins a shutdown, which ends before the host goes on without it, or joins it.
func (w *Watch) begin(ctx context.Context, atMost time.Duration) <-chan struct{} {
	if w.down == nil {
		w.up.end()
		w.under.Store(true)
		w.o.Logger.Info("the machine shuts down", "grace", w.o.Grace, "within", atMost)
		w.down, w.up = begin(ctx, atMost-min(time.Second, atMost/10), w.run), nil
	}
	return w.down.done
}

// run is one shutdown. The Node is reported beside the rest: an API server that does not answer must not use up the
// time of the kubelet.
func (w *Watch) run(ctx context.Context) {
	begin := time.Now()
	w.ran.Store(w.o.Runs(ctx))
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
	w.o.Logger.Info("shutdown inhibitor released", "took", time.Since(begin).Round(time.Millisecond))
}

func (w *Watch) say(ctx context.Context) {
	if err := w.o.Say(ctx); err != nil {
		w.o.Logger.Warn("the node is not reported as shutting down", "err", err)
	}
}

// undo ends a shutdown and starts the kubelet again. The start takes a while; the next shutdown ends it.
func (w *Watch) undo(ctx context.Context) {
	w.down.end()
	ran := w.ran.Load()
	w.o.Logger.Info("the shutdown is canceled", "kubeletStarted", ran)
	w.down, w.up = nil, begin(ctx, startTimeout, func(ctx context.Context) {
		defer w.under.Store(false)
		if !ran { // it was stopped before, on purpose
			return
		}
		if err := w.o.Start(ctx); err != nil {
			w.o.Logger.Warn("kubelet not started after a shutdown that was canceled", "err", err)
		}
	})
}
