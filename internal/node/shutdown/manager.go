package shutdown

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// ErrShuttingDown is why a node is not ready during a shutdown, in the words of the kubelet.
var ErrShuttingDown = errors.New("node is shutting down")

// settleTime is how long the last statuses may take to be delivered when all pods have ended. They
// are in the journal too.
const settleTime = 3 * time.Second

// Options configure a [Manager]. Pods and End are required.
type Options struct {
	// Grace is how long a shutdown may take, and Critical the share of it for critical pods.
	Grace, Critical time.Duration
	// Pods returns the pods that run now.
	Pods func() []*v1.Pod
	// End begins to end a pod within a grace, and returns a channel that is closed once it has ended.
	End func(pod *v1.Pod, grace time.Duration) <-chan struct{}
	// Undo lets pods run again that were ended for a shutdown that does not take place.
	Undo func()
	// Changed is called when the node begins or ceases to be ready, with a context that lasts as long
	// as the shutdown does.
	Changed func(context.Context)
	// Settle delivers the last statuses when the pods have ended.
	Settle func(context.Context) error
	// Host announces shutdowns of the machine and delays them. Nil: only [Manager.Drain] ends pods.
	Host Host
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// Manager ends the pods of a node before its machine goes down. See the package comment.
type Manager struct {
	o Options

	mu     sync.Mutex // guards what follows
	down   *drain     // nil: no shutdown
	rounds sync.WaitGroup
}

// drain is one shutdown.
type drain struct {
	announced bool // by the host, and not begun by an operator
	cancel    context.CancelFunc
	done      chan struct{} // closed when all pods have ended or the time is over
}

// New makes a manager. New starts nothing.
func New(o Options) *Manager {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Undo == nil {
		o.Undo = func() {}
	}
	if o.Changed == nil {
		o.Changed = func(context.Context) {}
	}
	if o.Settle == nil {
		o.Settle = func(context.Context) error { return nil }
	}
	return &Manager{o: o}
}

// Err is [ErrShuttingDown] during a shutdown, else nil.
func (m *Manager) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return ErrShuttingDown
	}
	return nil
}

// Drain begins a shutdown, unless one is in progress, and returns when its pods have ended or its
// time is over. If ctx ends first it returns the error of ctx, and the shutdown continues.
func (m *Manager) Drain(ctx context.Context) error {
	select {
	case <-m.begin(m.o.Grace, false):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Cancel ends a canceled shutdown. Cancel returns when all of its goroutines have ended.
func (m *Manager) Cancel() {
	m.mu.Lock()
	d := m.down
	m.down = nil
	m.mu.Unlock()
	if d == nil {
		return
	}
	d.cancel()
	<-d.done
	m.o.Logger.Info("shutdown canceled")
	m.o.Undo()
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	m.o.Changed(ctx)
}

// Close ends a shutdown in progress without undoing it, because this process ends. Close returns when
// all of its goroutines have ended.
func (m *Manager) Close() {
	m.mu.Lock()
	if m.down != nil {
		m.down.cancel()
	}
	m.mu.Unlock()
	m.rounds.Wait()
}

// begin starts a shutdown or joins the shutdown in progress.
func (m *Manager) begin(grace time.Duration, announced bool) (done <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down.done
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &drain{announced: announced, cancel: cancel, done: make(chan struct{})}
	m.down = d
	m.rounds.Go(func() {
		defer close(d.done)
		m.run(ctx, grace)
	})
	return d.done
}

// run is one shutdown. The Node is reported beside it: a server that does not answer must not use up
// the time of the pods. It has the time of the last statuses as well, since there may be no pods.
func (m *Manager) run(ctx context.Context, grace time.Duration) {
	reporting, enough := context.WithCancel(ctx)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		m.o.Changed(reporting)
	}()

	begin := time.Now()
	pods := m.o.Pods()
	m.o.Logger.Info("shutting down", "pods", len(pods), "grace", grace, "critical", min(m.o.Critical, grace))
	for _, group := range Plan(pods, grace, m.o.Critical) {
		m.end(ctx, group)
	}
	settling, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := m.o.Settle(settling); err != nil && ctx.Err() == nil {
		m.o.Logger.Warn("not all statuses were delivered before the shutdown", "err", err)
	}
	select {
	case <-reported:
	case <-settling.Done():
	}
	enough()
	<-reported
	m.o.Logger.Info("shutdown inhibitor released", "took", time.Since(begin).Round(time.Millisecond))
}

// end ends a group of pods and waits for them as long as it may.
func (m *Manager) end(ctx context.Context, group Group) {
	late := time.NewTimer(group.Within)
	defer late.Stop()
	ended := make([]<-chan struct{}, len(group.Pods))
	for i, pod := range group.Pods {
		ended[i] = m.o.End(pod, group.Within)
	}
	for i, pod := range group.Pods {
		select {
		case <-ended[i]:
		case <-ctx.Done():
			return
		case <-late.C:
			m.o.Logger.Warn("pods did not end in time", "first", pod.Namespace+"/"+pod.Name)
			return
		}
	}
}
