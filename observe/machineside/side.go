package machineside

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/observe"
	"github.com/statusd/statusd/observe/internal/answer"
	"github.com/statusd/statusd/observe/internal/pace"
)

// Side is what the operating system has. Make it with [New].
type Side struct {
	options Options
	log     *slog.Logger
	loop    *pace.Loop

	mu     sync.Mutex // guards what follows
	record answer.Record
	facts  observe.Machine // without the Answer
}

// New makes a side. It starts nothing and reads nothing: see [Side.Run].
func New(o Options) (*Side, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("machineside: %w", err)
	}
	o.setDefaults()
	loop, err := pace.New(o.Pace, o.Least)
	if err != nil {
		return nil, fmt.Errorf("machineside: %w", err)
	}
	return &Side{options: o, log: o.Logger, loop: loop, record: answer.New(o.KubeletRoot)}, nil
}

// Facts returns what the machine had last. It does not wait.
func (s *Side) Facts() observe.Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	facts := s.facts
	facts.MachineAnswer = s.record.Answer()
	return facts
}

// Refresh asks for a look before it is due. It never blocks; requests before the next look are one.
func (s *Side) Refresh() { s.loop.Refresh() }

// Run looks at the machine until ctx ends, then returns nil. It may be called once.
func (s *Side) Run(ctx context.Context) error {
	s.loop.Run(ctx, s.look)
	return nil
}

// look reads everything once.
func (s *Side) look(ctx context.Context) error {
	began := time.Now()
	facts, err := read(s.options, began)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		s.failed(err)
		return err
	}
	s.read(facts, began)
	return nil
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

// read takes over a whole look.
func (s *Side) read(facts observe.Machine, began time.Time) {
	s.mu.Lock()
	before := s.facts
	steady(&before, &facts)
	recovered := s.record.Good(began)
	changed := map[types.UID]bool{}
	merge(before.PodDirs, facts.PodDirs, changed, func(d *observe.PodDir) *time.Time { return &d.At })
	merge(before.Cgroups, facts.Cgroups, changed, func(c *observe.Cgroup) *time.Time { return &c.At })
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
func steady(before, now *observe.Machine) {
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
