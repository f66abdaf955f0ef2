package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/bounded"
	"github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/internal/wholefile"
)

const (
	defaultEvery   = 3 * time.Second
	restartTimeout = 3 * time.Minute
	// keepTimeout is how long the evidence may be collected, and keepPatience how long it is waited for: a disk that hangs does not hear
	// the end of a context.
	keepTimeout  = 8 * time.Second
	keepPatience = 10 * time.Second
	// saveTimeout is how long the file may take: a disk that hangs does not hold back what waits for it for longer.
	saveTimeout = 5 * time.Second
	// quiet is the least time between two looks: a unit that flaps must not keep the machine busy.
	quiet = 300 * time.Millisecond
	// keptRestarts is how many restarts the report has.
	keptRestarts = 50
)

// ErrWithheld is the error of [Guard.Restart] if the restart is withheld; the text has the reason.
var ErrWithheld = errors.New("guard: restart withheld")

// Guard watches over a kubelet. See the package comment.
type Guard struct {
	o       Options
	log     *slog.Logger
	metrics *metrics
	news    chan struct{} // of capacity 1
	doing   sync.WaitGroup
	write   func(path string, content []byte) error
	keeping *bounded.Calls // keep and find evidence
	saving  *bounded.Calls // write the file, one call at a time, so that the newest state is written last

	mu          sync.Mutex // guards what follows
	state       State
	evidence    Evidence
	report      Report
	annotated   Fact[Maintenance] // the last that was known
	suppression string            // the reason of the last notice that a restart is withheld
	under       string            // the current action
	ended       time.Time         // when the last thing was done
	storeErr    string            // why the file could not be written
	slot        bool              // a slot of the fleet is held
	held        string            // why the fleet withholds a restart, until heldUntil
	heldUntil   time.Time
	unknown     int       // how often in a row the slots were not known
	busyAt      time.Time // when other nodes were last seen to have all slots
}

// New makes a guard with the state of its file. New starts nothing.
func New(o Options) (*Guard, error) {
	if o.Kubelet == nil || o.Collect == nil {
		return nil, errors.New("guard: Kubelet and Collect are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	if o.RestartTimeout == 0 {
		o.RestartTimeout = restartTimeout
	}
	if o.Record == nil {
		o.Record = func(history.Record) {}
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	g := &Guard{o: o, log: o.Logger, news: make(chan struct{}, 1), keeping: bounded.New(), saving: bounded.New(), write: wholefile.Write}
	g.report = Report{Verdict: Verdict{Health: Unknown, Reasons: []Reason{}}, Evidence: []Item{}, Restarts: []Restart{}, Unit: o.Kubelet.Name()}
	g.load()
	g.metrics = newMetrics(g.Report)
	if o.Registerer != nil {
		if err := o.Registerer.Register(g.metrics); err != nil {
			return nil, fmt.Errorf("guard: metrics: %w", err)
		}
	}
	return g, nil
}

// Report returns the guard's current report. It implements the source of the query API.
func (g *Guard) Report() Report {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.report
	r.Restarts, r.Under = slices.Clone(r.Restarts), g.under
	return r
}

// Evidence returns the values found at the last look. Alert rules use it.
func (g *Guard) Evidence() Evidence {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.evidence
}

// Run watches until ctx ends. Run returns when all its goroutines have ended, except goroutines blocked on a hanging disk.
func (g *Guard) Run(ctx context.Context) error {
	if watcher, ok := g.o.Kubelet.(Watcher); ok {
		g.doing.Go(func() { g.watch(ctx, watcher) })
	}
	ticker := time.NewTicker(g.o.Every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		g.look(ctx)
		if !backoff.Sleep(ctx, quiet) {
			break
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-g.news:
		}
	}
	g.doing.Wait()
	g.store()
	return nil
}

// watchRetries spaces the tries to follow a service; between them the looks go on.
var watchRetries = backoff.Schedule{First: time.Second, Limit: time.Minute}

// watch has the evidence looked at as soon as the service changes.
func (g *Guard) watch(ctx context.Context, w Watcher) {
	for attempt := 1; ; attempt++ {
		begin := time.Now()
		err := w.Watch(ctx, func() { wake.Up(g.news) })
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) > watchRetries.Limit {
			attempt = 1
		}
		if attempt == 1 {
			g.log.Warn("watch of the service failed; polling", "service", g.o.Kubelet.Name(), "err", err)
		}
		if !backoff.Sleep(ctx, watchRetries.Random(attempt)) {
			return
		}
	}
}

// begin records the current action, so that no other action begins.
func (g *Guard) begin(what string) (ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under != "" {
		return false
	}
	g.under = what
	return true
}

func (g *Guard) end() {
	g.mu.Lock()
	g.under, g.ended = "", time.Now()
	g.mu.Unlock()
	wake.Up(g.news)
}

func (g *Guard) endedAfter(t time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended.After(t)
}

// look reads the evidence once, judges, decides, and acts.
func (g *Guard) look(ctx context.Context) {
	begin := time.Now()
	evidence := g.o.Collect(ctx)
	// Facts read during shutdown prove nothing, and facts read before the end of a restart are about the previous process.
	if ctx.Err() != nil || g.endedAfter(begin) {
		return
	}
	now := time.Now()
	annotated := g.rememberAnnotation(evidence)
	before, after, decision := g.judge(evidence, now)
	g.announce(before, after, decision)
	if decision.Restart != "" && g.begin("the "+string(decision.Restart)+" is restarted: "+decision.Reason) {
		g.doing.Go(func() {
			defer g.end()
			wanted := func() bool { return g.stillWanted(decision) }
			_ = g.restart(ctx, decision.Restart, decision.Reason, "guard", wanted) // the report has the error
		})
	}
	if after.Health == Healthy && now.Sub(after.Since) >= provenHealth && g.hasSlot() {
		g.doing.Go(func() { g.releaseSlot(ctx) })
	}
	// A restart counts even if this process is killed. A failed write is tried again. No look waits for the disk.
	if before.Health != after.Health || !before.Started.Equal(after.Started) || len(before.Would) != len(after.Would) || annotated || g.storeFailed() {
		g.doing.Go(g.store)
	}
}

// rememberAnnotation keeps what the annotation of the Node says, and reports whether that has changed. An API server that does not answer ends no maintenance.
func (g *Guard) rememberAnnotation(e Evidence) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !e.Maintenance.Known {
		return false
	}
	before := g.annotated.Value
	g.annotated = e.Maintenance
	return before.On != g.annotated.Value.On || !before.Until.Equal(g.annotated.Value.Until)
}

// stillWanted reports whether a decision still holds after the delay of the fleet.
func (g *Guard) stillWanted(d Decision) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	again := Decide(g.report.Verdict, g.o.Policy, g.historyLocked(), time.Now())
	return again.Restart == d.Restart
}

// judge takes in the evidence and returns the reports before and after it.
func (g *Guard) judge(evidence Evidence, now time.Time) (before, after Report, decision Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before = g.report
	verdict, state := Judge(evidence, g.state, now)
	g.state, g.evidence = state, evidence
	decision = Decide(verdict, g.o.Policy, g.historyLocked(), now)
	if decision.Restart != "" && now.Before(g.heldUntil) {
		decision = Decision{Withheld: g.held, Next: g.heldUntil, Do: verdict.Do}
	}
	if g.under != "" && (decision.Restart != "" || decision.Withheld != "") {
		decision = Decision{Withheld: g.under, Do: decision.Do}
	}
	r := &g.report
	r.At, r.Verdict, r.Evidence = now, verdict, Items(evidence, now)
	r.PID, r.Started = 0, time.Time{}
	if p := evidence.Process.Value; p.Exists {
		r.PID, r.Started = p.PID, p.Started
	}
	r.Withheld, r.NextRestart = decision.Withheld, decision.Next
	r.Would = g.would(verdict, now)
	if !now.Before(r.Maintenance) {
		r.Maintenance = time.Time{}
	}
	return before, *r, decision
}

func (g *Guard) historyLocked() History {
	return History{
		Restarts: g.report.Restarts, Process: g.evidence.Process, Maintenance: g.report.Maintenance,
		Annotated:    g.annotated,
		ShuttingDown: g.evidence.ShuttingDown.Known && g.evidence.ShuttingDown.Value,
	}
}

// Maintenance keeps the guard from restarting anything until a time; a time that is over ends it. It
// survives a restart of this program.
func (g *Guard) Maintenance(until time.Time) error {
	g.mu.Lock()
	g.report.Maintenance = until
	if !time.Now().Before(until) {
		g.report.Maintenance = time.Time{}
	}
	g.mu.Unlock()
	g.log.Info("maintenance changed", "until", until)
	wake.Up(g.news)
	g.o.Changed()
	return g.save()
}

// Restart restarts the kubelet for another reason than a verdict, within the same policy: budget, pauses,
// cool-down, maintenance and shutdown withhold it as well, with [ErrWithheld]. Restart returns when it is done.
func (g *Guard) Restart(ctx context.Context, reason string) error {
	g.mu.Lock()
	asked := Verdict{Health: Unhealthy, Helps: true, Reasons: []Reason{{Code: reason}}}
	decision := Decide(asked, g.o.Policy, g.historyLocked(), time.Now())
	g.mu.Unlock()
	if decision.Restart == "" {
		return fmt.Errorf("%w: %s", ErrWithheld, decision.Withheld)
	}
	if !g.begin("the kubelet is restarted: " + reason) {
		return fmt.Errorf("%w: %s", ErrWithheld, g.Report().Under)
	}
	defer g.end()
	return g.restart(ctx, TargetKubelet, reason, "rule", func() bool { return true })
}
