package logs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/internal/wholefile"
)

// Options configure a monitor.
type Options struct {
	// Rules are what lines mean; [DefaultRules] if nil.
	Rules []Rule
	// Kmsg is the log of the kernel, such as /dev/kmsg; empty: it is not read.
	Kmsg string
	// Units are the units of systemd whose journal is read, with their origins; empty: no journal is
	// read.
	Units map[string]Origin
	// JournalKernel reads the kernel's lines from the journal, too, for where there is no Kmsg.
	JournalKernel bool
	// JournalArgs are more arguments of journalctl, such as --directory=/host/var/log/journal.
	JournalArgs []string
	// Files are log files, by path.
	Files map[string]Origin
	// StateFile keeps how far the logs were read. Empty: a restart begins at the end of the logs.
	StateFile string
	// Share is how much of one CPU each log may cost, 0.1 if zero.
	Share float64
	// Problem receives the problems. It is called from one goroutine, and the next problem waits for it.
	// The same reason of the same pod is passed on at once the first time, and then every 10 seconds with a
	// count.
	Problem func(Problem)
	// Changed is called when the report has changed; nil: it is not.
	Changed func()
	// Registerer takes the metrics; nil: no metrics.
	Registerer prometheus.Registerer
	Logger     *slog.Logger

	bootID  string
	command string
	now     func() time.Time
	sleep   func(context.Context, time.Duration) bool
	user    bool
	// interval is how often the same problem is given away, pause how often positions are written while
	// nothing is found.
	interval, pause time.Duration
	// patience is how long problems wait for the state to be written.
	patience time.Duration
	// write replaces the state file.
	write func(file string, data []byte) error
}

// Problem is what lines of a log mean.
type Problem struct {
	// ID is the same whenever the same line is read.
	ID       string    `json:"id"`
	Origin   Origin    `json:"origin"`
	Reason   string    `json:"reason"`
	Severity Severity  `json:"severity"`
	At       time.Time `json:"at"`
	// Text is the last line, First the time of the first of Count.
	Text  string    `json:"text"`
	First time.Time `json:"first"`
	Count int       `json:"count"`
	// Victim is the process that was hit, nil if the line names none.
	Victim *Victim `json:"victim,omitempty"`
}

// Condition is a problem that lasts.
type Condition struct {
	Type   string    `json:"type"`
	True   bool      `json:"true"`
	Reason string    `json:"reason"`
	Text   string    `json:"text,omitempty"`
	Since  time.Time `json:"since"`
}

// Source is how far a log is read.
type Source struct {
	Name string `json:"name"`
	// Err is why it is not read; empty if it is.
	Err string `json:"error,omitempty"`
	// Lines counts the lines since the start, Lost the lines that disappeared before they could be read, LostBytes the
	// bytes of lost lines that could not be counted.
	Lines     int64 `json:"lines"`
	Lost      int64 `json:"lost,omitempty"`
	LostBytes int64 `json:"lostBytes,omitempty"`
	// Behind is how many bytes are left to be read, as far as it is known.
	Behind int64 `json:"behind,omitempty"`

	reported bool // that it is far behind
}

// Report is the summary of the logs.
type Report struct {
	Sources    []Source    `json:"sources"`
	Conditions []Condition `json:"conditions"`
	// Counts are the lines by reason, since the machine was started.
	Counts map[string]int64 `json:"counts"`
	// Problems are the last ones, the oldest first.
	Problems []Problem `json:"problems"`
}

// Monitor reads logs. Make it with [New].
type Monitor struct {
	options Options
	rules   []rule
	readers []reader
	due     chan struct{} // capacity 1: something waits to be given away
	saver   *saver

	mu      sync.Mutex // guards the fields below
	state   state
	sources map[string]*Source
	victims announcements
	metrics *metrics
}

// New makes a monitor. New reads its state and starts nothing: see [Monitor.Run].
func New(options Options) (*Monitor, error) {
	options.setDefaults()
	rules, err := compile(options.Rules)
	if err != nil {
		return nil, err
	}
	m := &Monitor{options: options, rules: rules, due: make(chan struct{}, 1), sources: map[string]*Source{}, metrics: newMetrics()}
	if m.state, err = loadState(options.StateFile, options.bootID); err != nil {
		options.Logger.Warn("the positions in the logs are lost; reading begins at their end", "file", options.StateFile, "error", err)
	}
	m.saver = newSaver(m.write)
	m.makeReaders()
	if options.Registerer != nil {
		if err := m.metrics.register(options.Registerer); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (o *Options) setDefaults() {
	if o.Rules == nil {
		o.Rules = DefaultRules()
	}
	o.bootID = cmp.Or(o.bootID, bootID())
	o.Share = min(1, max(0.001, cmp.Or(o.Share, 0.1)))
	o.command = cmp.Or(o.command, "journalctl")
	if o.now == nil {
		o.now = time.Now
	}
	if o.sleep == nil {
		o.sleep = backoff.Sleep
	}
	o.interval, o.pause, o.patience = cmp.Or(o.interval, 10*time.Second), cmp.Or(o.pause, time.Second), cmp.Or(o.patience, 2*time.Second)
	if o.write == nil {
		o.write = wholefile.Replace
	}
	if o.Problem == nil {
		o.Problem = func(Problem) {}
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}

// bootID changes with each start of the machine.
func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // every Linux has it
	return strings.TrimSpace(string(data))
}

func (m *Monitor) makeReaders() {
	o := &m.options
	limit := throttle{share: o.Share, sleep: o.sleep, spent: threadTime, now: time.Now}
	if o.Kmsg != "" {
		m.readers = append(m.readers, &kmsg{path: o.Kmsg, bootID: o.bootID, throttle: limit, now: o.now, sinceBoot: sinceBoot, user: o.user})
	}
	if len(o.Units) > 0 || o.JournalKernel {
		m.readers = append(m.readers, &journal{command: o.command, args: o.JournalArgs, units: o.Units, kernel: o.JournalKernel,
			filter: newPrefilter(m.rules, origins, listOfBytes, []byte("Suppressed ")), throttle: limit, now: o.now})
	}
	for path, origin := range o.Files {
		m.readers = append(m.readers, &logFile{path: path, origin: origin, filter: newPrefilter(m.rules, []Origin{origin}),
			throttle: limit, now: o.now, sleep: o.sleep, poll: 250 * time.Millisecond})
	}
	slices.SortFunc(m.readers, func(a, b reader) int { return strings.Compare(a.name(), b.name()) })
	for _, r := range m.readers {
		m.sources[r.name()] = &Source{Name: r.name()}
	}
}

// retry is the back-off for an unreadable log.
var retry = backoff.Schedule{First: time.Second, Limit: time.Minute}

// Run reads the logs until ctx ends. Run may be called once.
func (m *Monitor) Run(ctx context.Context) error {
	var reading sync.WaitGroup
	for _, r := range m.readers {
		reading.Go(func() { m.follow(ctx, r) })
	}
	giving, stop := context.WithCancel(context.Background())
	var given sync.WaitGroup
	wake.Up(m.due) // for what was not given away before a restart: a log that says nothing would keep it back
	given.Go(func() { m.give(giving) })
	go m.saver.run()
	reading.Wait()
	stop()
	given.Wait()
	if !m.saver.close(m.options.patience) {
		m.options.Logger.Warn("the positions in the logs are not saved in time: a restart reads lines again", "file", m.options.StateFile)
	}
	return nil
}

// follow reads one log, again and again if it cannot be read.
func (m *Monitor) follow(ctx context.Context, r reader) {
	runtime.LockOSThread() // its CPU time is the reader's
	defer runtime.UnlockOSThread()
	for attempt := 1; ctx.Err() == nil; attempt++ {
		m.mu.Lock()
		position, before := m.state.Positions[r.name()], m.sources[r.name()].Lines
		m.mu.Unlock()
		err := r.read(ctx, position, func(b batch) { m.take(r.name(), b) })
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the log has ended")
		}
		m.mu.Lock()
		source := m.sources[r.name()]
		if news := source.Err != err.Error(); news {
			m.options.Logger.Warn("a log cannot be read", "log", r.name(), "error", err)
		}
		source.Err = err.Error()
		if lost := (*lostPosition)(nil); errors.As(err, &lost) {
			delete(m.state.Positions, r.name())
		}
		if source.Lines > before {
			attempt = 1
		}
		m.mu.Unlock()
		m.options.Changed()
		if !m.options.sleep(ctx, retry.Random(attempt)) {
			return
		}
	}
}

// take is what a reader has read.
func (m *Monitor) take(name string, b batch) {
	meant := make([][]found, len(b.lines)) // outside the lock: expressions may take long
	for i, l := range b.lines {
		meant[i] = find(m.rules, l.origin, l.text)
	}
	m.mu.Lock()
	source := m.sources[name]
	changed := source.Err != ""
	source.Err = ""
	source.Lines += int64(b.count)
	m.metrics.read(name, b)
	if b.position != "" {
		m.state.Positions[name] = b.position
		m.state.dirty = true
	}
	for i, l := range b.lines {
		m.victims.take(l.text)
		for _, f := range meant[i] {
			m.count(l, f)
			changed = true
		}
	}
	for _, p := range source.lag(b, m.options.now(), m.options.Share) {
		m.count(p.line, p.found)
		changed = true
	}
	wanted := changed || m.state.dirty
	m.mu.Unlock()
	if wanted {
		wake.Up(m.due)
	}
	if changed {
		m.options.Changed()
	}
}

// count takes in what a line means. The lock is held.
func (m *Monitor) count(l line, f found) {
	now := m.options.now()
	if f.clears {
		m.state.setCondition(Condition{Type: f.Condition, Reason: f.Reason, Text: l.text, Since: now})
		return
	}
	m.state.Counts[f.Reason]++
	m.metrics.found(f)
	if f.Condition != "" {
		m.state.setCondition(Condition{Type: f.Condition, True: true, Reason: f.Reason, Text: l.text, Since: now})
	}
	if f.Frequent != nil {
		m.state.happened(f, l)
	}
	m.state.post(Problem{
		ID: string(l.origin) + " " + l.id + " " + f.Reason, Origin: l.origin, Reason: f.Reason, Severity: f.Severity,
		At: l.at, First: l.at, Text: l.text, Count: 1, Victim: m.victims.victim(f.pid, f.process),
	})
}

// give gives problems away, after they and the positions were saved: a crash in between gives them
// again under the same ID, and loses none. A disk that fails or hangs keeps none back.
func (m *Monitor) give(ctx context.Context) {
	for {
		select {
		case <-m.due:
		case <-ctx.Done():
		}
		last := ctx.Err() != nil // if ctx ends later, there is one more round: what waits is given then
		now := m.options.now()
		m.mu.Lock()
		m.state.forget(now, m.options.interval)
		ready := m.state.ready(now, m.options.interval, last)
		waiting := len(m.state.Outbox) > 0
		m.mu.Unlock()
		m.save()
		for _, p := range ready {
			m.options.Problem(p)
		}
		if len(ready) > 0 {
			m.mu.Lock()
			m.state.given(ready)
			m.mu.Unlock()
		}
		if last {
			m.save()
			return
		}
		m.options.sleep(ctx, m.options.pause)
		if waiting || len(ready) > 0 {
			wake.Up(m.due)
		}
	}
}

// save writes the state if it has changed. The state is encoded under the lock and written outside it.
func (m *Monitor) save() {
	if data := m.encode(); data != nil {
		m.saver.put(data, m.options.patience)
	}
}

// encode is the state, nil if it has not changed or is kept nowhere.
func (m *Monitor) encode() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.state.dirty || m.options.StateFile == "" {
		return nil
	}
	data, err := json.Marshal(&m.state)
	m.state.dirty = false
	if err != nil { // a line with a date that has no text
		m.cannotSave(err)
		return nil
	}
	return data
}

// write replaces the file with a state. The saver calls it.
func (m *Monitor) write(data []byte) {
	err := m.options.write(m.options.StateFile, data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.cannotSave(err)
	} else {
		m.state.unsaved = false
	}
}

// cannotSave logs the first error of a series, and lets the next change be saved with all before it. The lock is held.
func (m *Monitor) cannotSave(err error) {
	if !m.state.unsaved {
		m.options.Logger.Warn("the positions in the logs cannot be saved: a restart reads lines again", "file", m.options.StateFile, "error", err)
	}
	m.state.dirty, m.state.unsaved = true, true
}

// Report returns the current summary of the logs.
func (m *Monitor) Report() Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Report{Sources: []Source{}, Conditions: m.state.conditions(m.options.now(), m.rules), Counts: map[string]int64{}, Problems: slices.Clone(m.state.Recent)}
	for _, reader := range m.readers {
		r.Sources = append(r.Sources, *m.sources[reader.name()])
	}
	for reason, n := range m.state.Counts {
		r.Counts[reason] = n
	}
	return r
}
