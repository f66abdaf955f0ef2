package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/wake"
)

const (
	// lookBudget is how long all rules of a subject may take, in addition to the bound on the cost of
	// each expression.
	lookBudget = 5 * time.Second
	// clockEvery is how often the clock is checked for jumps.
	clockEvery = 10 * time.Second
	// clockTolerance is how far wall clock and monotonic clock may come apart between two evaluations: a slewed
	// clock does not count as a jump.
	clockTolerance = time.Second
)

// Engine evaluates rules when facts change and when time has passed. All methods may be called from
// any goroutine.
type Engine struct {
	options Options
	log     *slog.Logger
	file    *stateFile // used by Run alone
	// unwritten: the last write has failed; used by Run alone.
	unwritten bool
	arrived   chan struct{}
	// clock is the time of day and a time that only grows.
	clock func() (time.Time, time.Duration)

	// inbox guards the changed subjects that were not evaluated yet, each once.
	inbox struct {
		sync.Mutex
		queue   []types.UID
		queued  map[types.UID]bool
		backlog []types.UID // unchanged subjects, evaluated when the engine is idle
	}

	// mu guards the fields below.
	mu     sync.Mutex
	core   *core
	listed []alert.Alert // the alerts as of version
	as     uint64
	// runs: Run writes changes. The channels of waited are closed once earlier changes are written, or cannot
	// be written.
	runs   bool
	waited []chan struct{}
}

// New returns an engine and reads its state file. New starts nothing.
func New(options Options) (*Engine, error) {
	if options.Source == nil || options.Set == nil {
		return nil, errors.New("rules: Source and Set are required")
	}
	began := time.Now()
	e := &Engine{
		options: options, log: cmp.Or(options.Logger, slog.New(slog.DiscardHandler)), arrived: make(chan struct{}, 1),
		clock: func() (time.Time, time.Duration) { return time.Now().Round(0), time.Since(began) },
	}
	e.inbox.queued = map[types.UID]bool{}
	now, _ := e.clock()
	e.core = newCore(&e.options, now)
	e.core.version = 1
	e.loaded(options.Set)
	if options.StateFile != "" {
		if err := e.open(now); err != nil {
			return nil, fmt.Errorf("rules: %w", err)
		}
	}
	if options.Registerer != nil {
		options.Registerer.MustRegister(collector{e})
	}
	return e, nil
}

// open reads the state file and compacts it.
func (e *Engine) open(now time.Time) error {
	lines, broken, err := readState(e.options.StateFile)
	if err != nil {
		return err
	}
	if broken > 0 {
		e.log.Warn("some alerts could not be read", "file", e.options.StateFile, "lines", broken)
		e.core.metrics.stateErrors.Add(float64(broken))
	}
	e.core.restore(lines, now)
	data, err := e.core.snapshot()
	if err != nil {
		return err
	}
	e.file = &stateFile{path: e.options.StateFile, create: e.options.create}
	if e.file.create == nil {
		e.file.create = os.CreateTemp
	}
	if err = e.file.replace(data); takesNoWrites(err) {
		e.wrote(true, err)
		return nil // each write tries again
	}
	return err
}

func (e *Engine) loaded(set *ruleset.Set) {
	e.core.metrics.reloaded.Set(1)
	e.core.metrics.reloadedAt.SetToCurrentTime()
	e.core.metrics.rules.Set(float64(len(set.Rules())))
}

// Run evaluates until ctx ends. It is called once.
func (e *Engine) Run(ctx context.Context) error {
	defer e.setRuns(false)
	defer e.closeFile()
	if e.options.Ready != nil {
		select {
		case <-e.options.Ready:
		case <-ctx.Done():
			return nil
		}
	}
	e.setRuns(true)
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	ended := make(chan error, 1)
	watch.Go(func() { ended <- e.options.Source.Watch(watching, e.change) })
	e.begin()
	wall, monotonic := e.clock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now, since := e.clock()
		if jump := now.Sub(wall) - (since - monotonic); jump.Abs() > clockTolerance {
			e.log.Warn("the clock has jumped", "by", jump)
			e.locked(func(c *core) { c.clockStepped(jump, now) })
		}
		wall, monotonic = now, since
		if e.turn(now) {
			continue
		}
		timer.Reset(e.wait(now))
		select {
		case <-ctx.Done():
		case err := <-ended:
			if ctx.Err() == nil { // no further changes will be announced
				return fmt.Errorf("rules: the watch of the source has ended: %w", cmp.Or(err, errors.New("without an error")))
			}
		case <-e.arrived:
		case <-timer.C:
		}
	}
	return nil
}

// setRuns notes whether Run writes changes. If not, it releases all callers that wait for a write.
func (e *Engine) setRuns(runs bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs = runs
	if !runs {
		for _, written := range e.waited {
			close(written)
		}
		e.waited = nil
	}
}

// begin passes on the alerts restored from the last run, and queues all subjects.
func (e *Engine) begin() {
	now, _ := e.clock()
	var restored []types.UID
	e.locked(func(c *core) { restored = c.resume(now) })
	e.queueAll(restored)
}

// queueAll has all subjects looked at when there is nothing else to do.
func (e *Engine) queueAll(more []types.UID) {
	uids := append(append([]types.UID{""}, more...), e.options.Source.UIDs()...)
	e.inbox.Lock()
	defer e.inbox.Unlock()
	e.inbox.backlog = append(e.inbox.backlog, uids...)
	wake.Up(e.arrived)
}

// change notes that something about a pod, or the node, has changed.
func (e *Engine) change(uid types.UID) {
	e.inbox.Lock()
	defer e.inbox.Unlock()
	if !e.inbox.queued[uid] {
		e.inbox.queued[uid] = true
		e.inbox.queue = append(e.inbox.queue, uid)
		wake.Up(e.arrived)
	}
}

// turn evaluates one subject: a changed one, else a due one, else one of the backlog. turn reports
// whether there was a subject.
func (e *Engine) turn(now time.Time) bool {
	uid, ok := e.taken()
	announced := ok
	ctx, cancel := context.WithTimeout(context.Background(), lookBudget)
	defer cancel()
	e.locked(func(c *core) {
		if ends := c.silenceEnds(); !ends.IsZero() && !now.Before(ends) {
			c.reconsider(now)
		}
		if !ok {
			uid, ok = c.due(now)
		}
		if !ok {
			uid, ok = e.leftover()
		}
		if ok && !(announced && uid == "" && c.pause(now)) {
			began := time.Now()
			c.evaluate(ctx, uid, now)
			c.metrics.duration.Observe(time.Since(began).Seconds())
		}
	})
	return ok
}

func (e *Engine) taken() (types.UID, bool) {
	e.inbox.Lock()
	defer e.inbox.Unlock()
	if len(e.inbox.queue) == 0 {
		return "", false
	}
	uid := e.inbox.queue[0]
	e.inbox.queue = e.inbox.queue[1:]
	if len(e.inbox.queue) == 0 {
		e.inbox.queue = nil // gives the memory of a burst back
	}
	delete(e.inbox.queued, uid)
	return uid, true
}

func (e *Engine) leftover() (types.UID, bool) {
	e.inbox.Lock()
	defer e.inbox.Unlock()
	if len(e.inbox.backlog) == 0 {
		return "", false
	}
	uid := e.inbox.backlog[0]
	e.inbox.backlog = e.inbox.backlog[1:]
	return uid, true
}

// wait is how long there is nothing to do, unless something changes.
func (e *Engine) wait(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := earliest(e.core.schedule.next(), e.core.silenceEnds())
	if at.IsZero() {
		return clockEvery
	}
	return min(max(at.Sub(now), 0), clockEvery)
}

// locked changes the core, then writes the changes, and only then notifies outputs: an alert that an
// output has is in the file.
func (e *Engine) locked(change func(*core)) {
	e.mu.Lock()
	change(e.core)
	data, err := e.core.news()
	deliveries, changed := e.core.deliveries, slices.Sorted(maps.Keys(e.core.changed))
	e.core.deliveries = nil
	clear(e.core.changed)
	waited := e.waited
	e.waited = nil
	e.mu.Unlock()
	if err == nil && len(data) > 0 {
		err = e.write(data)
	}
	e.wrote(len(data) > 0, err)
	for _, written := range waited {
		close(written)
	}
	for i := range deliveries {
		e.pass(&deliveries[i])
	}
	if e.options.Changed != nil {
		for _, uid := range changed {
			e.options.Changed(uid)
		}
	}
}

// wrote notes whether the last write has succeeded. A disk that takes no writes is logged once, not with each change.
func (e *Engine) wrote(tried bool, err error) {
	switch {
	case err != nil:
		e.core.metrics.stateErrors.Inc()
		if !e.unwritten {
			e.log.Error("alerts could not be written, a restart may pass them on again", "file", e.options.StateFile, "err", err)
		}
		e.unwritten = true
	case tried && e.unwritten:
		e.log.Info("alerts are written again", "file", e.options.StateFile)
		e.unwritten = false
	}
}

func (e *Engine) write(data []byte) error {
	if e.file == nil {
		return nil
	}
	defer func() { e.core.metrics.stateBytes.Set(float64(e.file.size)) }()
	if e.file.file != nil && e.file.size+int64(len(data)) <= e.file.compact {
		if err := e.file.append(data); err == nil {
			return nil
		}
	}
	e.mu.Lock()
	all, err := e.core.snapshot() // has the data as well
	e.mu.Unlock()
	if err != nil {
		return err
	}
	return e.file.replace(all)
}

func (e *Engine) closeFile() {
	if e.file == nil {
		return
	}
	e.mu.Lock()
	all, err := e.core.snapshot()
	e.mu.Unlock()
	if err == nil {
		err = e.file.replace(all)
	}
	if err != nil {
		e.log.Error("alerts could not be written", "file", e.options.StateFile, "err", err)
	}
	e.file.close()
}

// pass hands an alert to the outputs, or asks the actor.
func (e *Engine) pass(t *delivery) {
	if t.action != nil {
		if e.options.Actor != nil {
			e.options.Actor.Act(ActionRequest{Alert: t.alert, Rule: t.rule, Action: *t.action, At: t.at, Node: e.options.Node, Done: e.acted(t.id, t.alert.Since)})
		}
		return
	}
	for _, o := range e.options.Outputs {
		name := o.Name()
		e.core.metrics.notifyings.Inc()
		o.Notify(Notification{
			Alert: t.alert, Rule: t.rule, At: t.at, Node: e.options.Node, Again: slices.Contains(t.done, name),
			Done: func() { e.later(func(c *core) { c.acknowledge(t.id, t.alert.State, t.alert.Since, name) }) },
		})
	}
}
