package criside

import (
	"context"
	"errors"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/audit"
)

// errNoID: without an ID, containers cannot be distinguished.
var errNoID = errors.New("the runtime has listed something without an ID")

// list asks for everything. Containers come first: the sandbox of a container that is made meanwhile is then in the
// later list.
func (s *Side) list(ctx context.Context) (state, error) {
	c, err := s.connection(ctx)
	if err != nil {
		return state{}, err
	}
	containers, err := c.containers(ctx)
	if err != nil {
		return state{}, err
	}
	sandboxes, err := c.sandboxes(ctx)
	if err != nil {
		return state{}, err
	}
	next := newState()
	if err := s.addSandboxes(ctx, c, sandboxes, next); err != nil {
		return state{}, err
	}
	return next, s.addContainers(ctx, c, containers, next)
}

// connection returns the client and creates it if needed. The client reconnects by itself when the runtime is restarted.
func (s *Side) connection(ctx context.Context) (*client, error) {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := connect(ctx, s.options.Endpoint, s.options.Timeout, s.counter)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = c
	return c, nil
}

// addSandboxes adds the listed sandboxes, and the addresses of ready ones.
func (s *Side) addSandboxes(ctx context.Context, c *client, listed []*runtimeapi.PodSandbox, next state) error {
	now := time.Now()
	for _, l := range listed {
		if l.GetId() == "" {
			return errNoID
		}
		sandbox := sandboxOf(l, now)
		s.mu.Lock()
		ips, known := s.addresses[l.Id]
		s.mu.Unlock()
		if sandbox.Ready && !known {
			status, err := c.sandbox(ctx, l.Id)
			switch {
			case silence(err):
				return err
			case gone(err):
				continue
			case err == nil:
				ips = addresses(status.GetNetwork())
				s.mu.Lock()
				s.addresses[l.Id] = ips
				s.mu.Unlock()
			}
		}
		sandbox.IPs = ips
		next.sandboxes[l.Id] = sandbox
	}
	return nil
}

// addContainers adds the containers of a list, with what a status knows of them.
func (s *Side) addContainers(ctx context.Context, c *client, listed []*runtimeapi.Container, next state) error {
	now := time.Now()
	for _, l := range listed {
		if l.GetId() == "" {
			return errNoID
		}
		container := containerOf(l, next.sandboxes[l.PodSandboxId], now)
		d, err := s.detail(ctx, c, l.Id, container.State)
		switch {
		case silence(err):
			return err
		case gone(err):
			continue
		case err != nil: // without an exit code, "exited" would read as success
			container.State, container.Message = audit.ContainerUnknown, cut(err.Error())
		default:
			container = d.with(container)
		}
		next.containers[l.Id] = container
	}
	return nil
}

// detail asks for the status of a container, once per state.
func (s *Side) detail(ctx context.Context, c *client, id string, in audit.ContainerState) (detail, error) {
	s.mu.Lock()
	d, known := s.details[id]
	s.mu.Unlock()
	switch {
	case known && d.state == in:
		return d, nil
	case in == audit.ContainerCreated:
		return detail{state: in}, nil
	}
	status, err := c.container(ctx, id)
	if err != nil {
		return detail{}, err
	}
	d = detailOf(status)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.details[id] = d
	return d, nil
}
