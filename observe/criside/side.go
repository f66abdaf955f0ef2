package criside

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/statusd/statusd/observe"
	"github.com/statusd/statusd/observe/internal/answer"
	"github.com/statusd/statusd/observe/internal/pace"
)

// Side is what a container runtime has. Make it with [New].
type Side struct {
	options Options
	log     *slog.Logger
	loop    *pace.Loop
	counter *counter
	client  *client // of Run; nil while the runtime has never answered

	mu         sync.Mutex // guards what follows
	record     answer.Record
	sandboxes  map[string]observe.Sandbox
	containers map[string]observe.Container
}

// New makes a side. It starts nothing and sends no request: see [Side.Run].
func New(o Options) (*Side, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("criside: %w", err)
	}
	o.setDefaults()
	loop, err := pace.New(o.Pace, o.Least)
	if err != nil {
		return nil, fmt.Errorf("criside: %w", err)
	}
	return &Side{options: o, log: o.Logger, loop: loop, record: answer.New(o.Endpoint), counter: &counter{calls: map[string]uint64{}}}, nil
}

// Facts returns what the runtime had last. It does not wait.
func (s *Side) Facts() observe.Runtime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return observe.Runtime{RuntimeAnswer: s.record.Answer(), Sandboxes: s.sandboxes, Containers: s.containers}
}

// Refresh asks for a list before it is due. It never blocks; requests before the next list are one.
func (s *Side) Refresh() { s.loop.Refresh() }

// Calls returns how often the runtime was called, by method.
func (s *Side) Calls() map[string]uint64 { return s.counter.all() }

// Run asks the runtime until ctx ends, then returns nil. It may be called once.
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
	sandboxes, containers, err := s.list(ctx)
	if ctx.Err() != nil {
		return nil // the end of the side is no silence of the runtime
	}
	if err != nil {
		s.failed(err)
		return err
	}
	s.listed(sandboxes, containers, asked)
	return nil
}

// failed notes that the runtime did not answer.
func (s *Side) failed(err error) {
	s.mu.Lock()
	news := s.record.Bad(time.Now(), err)
	s.mu.Unlock()
	if news {
		s.log.Warn("the container runtime does not answer, retrying", "err", err)
		s.options.Changed("")
	}
}

// list asks for everything. Containers come first: the sandbox of a container that is made meanwhile is then in the later list.
func (s *Side) list(ctx context.Context) (map[string]observe.Sandbox, map[string]observe.Container, error) {
	if s.client == nil {
		c, err := connect(ctx, s.options.Endpoint, s.options.Timeout, s.counter)
		if err != nil {
			return nil, nil, err
		}
		s.client = c
	}
	listed, err := s.client.containers(ctx)
	if err != nil {
		return nil, nil, err
	}
	pods, err := s.client.sandboxes(ctx)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	sandboxes, containers := map[string]observe.Sandbox{}, map[string]observe.Container{}
	for _, p := range pods {
		sandboxes[p.Id] = sandboxOf(p, now)
	}
	for _, c := range listed {
		container := containerOf(c, sandboxes[c.PodSandboxId], now)
		detail, err := s.client.container(ctx, c.Id)
		switch {
		case err == nil:
			containers[c.Id] = fill(container, detail)
		case silence(err):
			return nil, nil, err
		case !gone(err):
			container.State, container.Message = observe.ContainerUnknown, err.Error()
			containers[c.Id] = container
		}
	}
	return sandboxes, containers, nil
}

// listed takes over a whole answer.
func (s *Side) listed(sandboxes map[string]observe.Sandbox, containers map[string]observe.Container, asked time.Time) {
	s.mu.Lock()
	recovered := s.record.Good(asked)
	changed := map[types.UID]bool{}
	for id, now := range sandboxes {
		if before, ok := s.sandboxes[id]; ok {
			now.At = before.At
			if reflect.DeepEqual(before, now) {
				sandboxes[id] = before
				continue
			}
		}
		changed[now.UID] = true
	}
	for id, before := range s.sandboxes {
		if _, ok := sandboxes[id]; !ok {
			changed[before.UID] = true
		}
	}
	for id, now := range containers {
		if before, ok := s.containers[id]; ok {
			now.At = before.At
			if before == now {
				containers[id] = before
				continue
			}
		}
		changed[now.UID] = true
	}
	for id, before := range s.containers {
		if _, ok := containers[id]; !ok {
			changed[before.UID] = true
		}
	}
	s.sandboxes, s.containers = sandboxes, containers
	s.mu.Unlock()
	if recovered {
		s.log.Info("the container runtime answers", "endpoint", s.options.Endpoint)
		s.options.Changed("")
	}
	for uid := range changed {
		s.options.Changed(uid)
	}
}
