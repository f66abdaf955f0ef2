package machineside

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/internal/answer"
	"github.com/statusd/statusd/internal/audit/internal/pace"
	"github.com/statusd/statusd/internal/hostproc"
)

// Side collects the operating system's facts. Make it with [New].
type Side struct {
	options Options
	log     *slog.Logger
	loop    *pace.Loop
	// read reads the machine. pending has the result of a reading in progress, or is nil. Only Run's goroutine
	// uses it.
	read    func(time.Time) (reading, error)
	pending chan result
	// manifests is why the manifests are not known, as it was logged last.
	manifests string

	mu     sync.Mutex // guards what follows
	record answer.Record
	facts  audit.Machine // without the Answer
}

// New makes a side. New starts nothing and reads nothing: see [Side.Run].
func New(o Options) (*Side, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("machineside: %w", err)
	}
	o.setDefaults()
	loop, err := pace.New(o.Pace, o.Least)
	if err != nil {
		return nil, fmt.Errorf("machineside: %w", err)
	}
	s := &Side{options: o, log: o.Logger, loop: loop, record: answer.New(o.KubeletRoot)}
	var before hostproc.Process // one reading goes on at a time
	s.read = func(now time.Time) (reading, error) {
		r, err := read(o, before, now)
		before = r.process
		return r, err
	}
	return s, nil
}

// Facts returns the latest facts of the machine. Facts does not wait.
func (s *Side) Facts() audit.Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	facts := s.facts
	facts.MachineAnswer = s.record.Answer()
	return facts
}

// Refresh requests an early reading. Refresh never blocks; requests before the next reading are merged.
func (s *Side) Refresh() { s.loop.Refresh() }

// Run reads the machine until ctx ends, then returns nil. Run may be called once.
func (s *Side) Run(ctx context.Context) error {
	s.loop.Run(ctx, s.look)
	if s.pending != nil {
		timer := time.NewTimer(leaveAfter)
		defer timer.Stop()
		select {
		case <-s.pending:
		case <-timer.C:
		}
	}
	return nil
}

// leaveAfter is how long Run waits at its end for a reading in progress. A hanging reading is abandoned.
const leaveAfter = time.Second

// reading is the result of one reading of the machine.
type reading struct {
	facts     audit.Machine
	process   hostproc.Process // the kubelet's
	manifests error            // why the manifests are not known
}

// result is the end of a reading.
type result struct {
	reading
	err   error
	began time.Time
}

// look reads everything once. A file system whose server is gone may block the reading, and nothing can interrupt it:
// then the machine is unknown, and the next look waits for the same reading.
func (s *Side) look(ctx context.Context) error {
	if s.pending == nil {
		pending := make(chan result, 1)
		go func() {
			r := result{began: time.Now()}
			r.reading, r.err = s.read(r.began)
			pending <- r
		}()
		s.pending = pending
	}
	timer := time.NewTimer(s.options.Timeout)
	defer timer.Stop()
	var r result
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
		r.err = fmt.Errorf("not read within %v: a file system hangs, or the machine is overloaded", s.options.Timeout)
	case r = <-s.pending:
		s.pending = nil
	}
	if r.err != nil {
		s.failed(r.err)
		return r.err
	}
	s.note(r.manifests)
	s.take(r.facts, r.began)
	return nil
}

// note logs why the manifests are not known, if that is news.
func (s *Side) note(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != s.manifests && text != "" {
		s.log.Warn("the manifests of static pods are not known", "err", text)
	}
	s.manifests = text
}

// failed notes that something could not be read.
func (s *Side) failed(err error) {
	s.mu.Lock()
	news := s.record.Bad(time.Now(), err)
	s.mu.Unlock()
	if news {
		s.log.Warn("the machine cannot be read, retrying", "err", err)
		s.options.Changed("")
	}
}

// take takes over a whole look.
func (s *Side) take(facts audit.Machine, began time.Time) {
	s.mu.Lock()
	before := s.facts
	steady(&before, &facts)
	recovered := s.record.Good(began)
	changed := map[types.UID]bool{}
	merge(before.PodDirs, facts.PodDirs, changed, func(d *audit.PodDir) *time.Time { return &d.At })
	merge(before.Cgroups, facts.Cgroups, changed, func(c *audit.Cgroup) *time.Time { return &c.At })
	if recovered || !reflect.DeepEqual(before.Process, facts.Process) || !reflect.DeepEqual(before.Manifests, facts.Manifests) ||
		before.ManifestsKnown != facts.ManifestsKnown || before.ProcessKnown != facts.ProcessKnown {
		changed[""] = true
	}
	s.facts = facts
	s.mu.Unlock()
	if recovered {
		s.log.Info("the machine is read", "pods", len(facts.PodDirs), "cgroups", len(facts.Cgroups))
	}
	for uid := range changed {
		s.options.Changed(uid)
	}
}

// jitter is by how much two readings of the same time may differ: the kernel gives the time of boot in
// seconds, and computes it from a clock that is being adjusted.
const jitter = 2 * time.Second

// steady keeps the times of boot and of the process's start if they have not really changed.
func steady(before, now *audit.Machine) {
	if now.Boot.Sub(before.Boot).Abs() < jitter {
		now.Boot = before.Boot
	}
	if a, b := before.Process, now.Process; a != nil && b != nil && a.PID == b.PID && b.Started.Sub(a.Started).Abs() < jitter {
		b.Started = a.Started
	}
}

// merge keeps when a fact that has not changed was first seen, and notes the others as changed.
func merge[T any](before, after map[types.UID]T, changed map[types.UID]bool, at func(*T) *time.Time) {
	for uid, now := range after {
		was, ok := before[uid]
		if ok {
			same := now
			*at(&same) = *at(&was)
			if reflect.DeepEqual(was, same) {
				after[uid] = same
				continue
			}
		}
		changed[uid] = true
	}
	for uid := range before {
		if _, ok := after[uid]; !ok {
			changed[uid] = true
		}
	}
}
