package criside

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/audit"
)

// events follows the events of the runtime until ctx ends, from each list that was answered on. A stream that ends
// asks for a list, so that a runtime that is gone is noticed at once; one that ends again and again does not.
func (s *Side) events(ctx context.Context) {
	short := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.connected:
		}
		s.mu.Lock()
		c := s.client
		s.mu.Unlock()
		if !c.events {
			s.log.Info("the container runtime shares its events among those that ask, and is listed only")
			return
		}
		began := time.Now()
		err := c.follow(ctx, func() {
			s.loop.SetPace(max(s.options.Pace, EventedPace))
			if short == 0 {
				s.Refresh() // for what happened between the list and now
			}
		}, s.event)
		s.loop.SetPace(s.options.Pace)
		if ctx.Err() != nil {
			return
		}
		if status.Code(err) == codes.Unimplemented {
			s.log.Info("the container runtime has no events, and is listed only")
			return
		}
		s.log.Info("the events of the container runtime have ended", "err", err)
		if time.Since(began) >= s.options.Pace {
			short = 0
		}
		if short == 0 {
			s.Refresh()
		}
		short++
	}
}

// event takes over one event: the state of a pod after a change of one of its containers.
func (s *Side) event(e *runtimeapi.ContainerEventResponse) {
	now := time.Now()
	n := newNews()
	var sandbox audit.Sandbox
	if p := e.GetPodSandboxStatus(); p.GetId() != "" {
		sandbox = sandboxOfStatus(p, now)
		n.sandboxes[sandbox.ID] = &sandbox
	}
	for _, c := range e.GetContainersStatuses() {
		if c.GetId() != "" && sandbox.ID != "" {
			container := containerOfStatus(c, sandbox, now)
			n.containers[container.ID] = &container
		}
	}
	if e.ContainerEventType == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT && e.ContainerId != "" {
		// The ID is that of a container or of a sandbox.
		n.containers[e.ContainerId] = nil
		n.sandboxes[e.ContainerId] = nil
	}
	for uid := range s.apply(n, e) {
		s.options.Changed(uid)
	}
}

// apply takes over news. It returns the pods that have changed.
func (s *Side) apply(n news, e *runtimeapi.ContainerEventResponse) map[types.UID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range e.GetContainersStatuses() {
		_, ok := n.containers[c.GetId()]
		if d := detailOf(c); ok && d.state != audit.ContainerCreated && !isOver(d.state, s.details[c.GetId()].state) {
			s.details[c.GetId()] = d
		}
	}
	for id, sandbox := range n.sandboxes {
		if sandbox != nil && sandbox.Ready {
			s.addresses[id] = sandbox.IPs
		}
	}
	for id, container := range s.state.containers { // they went with their sandbox
		if sandbox, ok := n.sandboxes[container.SandboxID]; ok && sandbox == nil {
			n.containers[id] = nil
		}
	}
	s.news.add(n)
	next := s.state.clone()
	n.apply(next)
	changed := next.since(s.state)
	s.state = next
	return changed
}
