package criside

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/internal/answer"
	"github.com/statusd/statusd/internal/audit/internal/pace"
)

// Side collects a container runtime's facts. Make it with [New].
type Side struct {
	options Options
	log     *slog.Logger
	loop    *pace.Loop
	counter *counter

	mu     sync.Mutex // guards what follows
	client *client    // nil before the runtime has answered
	record answer.Record
	state  state // handed out, and therefore replaced as a whole
	// details and addresses are the requested facts of containers and sandboxes, by ID.
	details   map[string]detail
	addresses map[string][]string
}

// New makes a side. New starts nothing and sends no request: see [Side.Run].
func New(o Options) (*Side, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("criside: %w", err)
	}
	o.setDefaults()
	loop, err := pace.New(o.Pace, o.Least)
	if err != nil {
		return nil, fmt.Errorf("criside: %w", err)
	}
	return &Side{
		options: o, log: o.Logger, loop: loop, record: answer.New(o.Endpoint), counter: &counter{calls: map[string]uint64{}},
		details: map[string]detail{}, addresses: map[string][]string{},
	}, nil
}

// Facts returns the latest facts from the runtime. Facts does not wait.
func (s *Side) Facts() audit.Runtime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return audit.Runtime{RuntimeAnswer: s.record.Answer(), Sandboxes: s.state.sandboxes, Containers: s.state.containers}
}

// Refresh requests an early list. Refresh never blocks; requests before the next list are merged.
func (s *Side) Refresh() { s.loop.Refresh() }

// Calls returns how often the runtime was called, by method.
func (s *Side) Calls() map[string]uint64 { return s.counter.all() }

// Run queries the runtime until ctx ends, then returns nil. Run may be called once.
func (s *Side) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.Logger{}) // the errors are in the Answer
	s.loop.Run(ctx, s.look)
	if s.client != nil {
		s.client.close()
	}
	return nil
}

// look asks the runtime once.
func (s *Side) look(ctx context.Context) error {
	asked := time.Now()
	next, err := s.list(ctx)
	if ctx.Err() != nil {
		return nil // the end of the side is no silence of the runtime
	}
	if err != nil {
		s.failed(err)
		return err
	}
	s.listed(next, asked)
	return nil
}

// failed notes that the runtime did not answer.
func (s *Side) failed(err error) {
	s.mu.Lock()
	news := s.record.Bad(time.Now(), s.explain(err))
	s.mu.Unlock()
	if news {
		s.log.Warn("the container runtime does not answer, retrying", "err", err)
		s.options.Changed("")
	}
}

// listed takes over a whole answer.
func (s *Side) listed(next state, asked time.Time) {
	s.mu.Lock()
	changed := next.since(s.state)
	s.state = next
	recovered := s.record.Good(asked)
	s.forget()
	s.mu.Unlock()
	if recovered {
		s.log.Info("the container runtime answers", "endpoint", s.options.Endpoint)
		s.options.Changed("")
	}
	for uid := range changed {
		s.options.Changed(uid)
	}
}

// forget drops the details of removed containers and sandboxes. The caller holds the lock.
func (s *Side) forget() {
	for id := range s.details {
		if _, ok := s.state.containers[id]; !ok {
			delete(s.details, id)
		}
	}
	for id := range s.addresses {
		if _, ok := s.state.sandboxes[id]; !ok {
			delete(s.addresses, id)
		}
	}
}

// explain adds to an error what a person needs to know.
func (s *Side) explain(err error) error {
	if timedOut(err) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: the container runtime hangs, is stopped or overloaded: %w", s.options.Timeout, err)
	}
	return err
}
