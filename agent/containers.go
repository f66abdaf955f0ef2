package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/statusd/statusd/runtime"
)

// EndContainers ends the containers that an agent has left running in this runtime, as a shutdown
// of the machine would: SIGTERM, and SIGKILL after the grace period. A runtime with durable records
// reports the exits to the next agent. EndContainers must not be called while an agent uses the
// runtime. EndContainers returns the number of containers.
func EndContainers(ctx context.Context, rt runtime.Runtime, grace time.Duration) (ended int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if runner, ok := rt.(runtime.Runner); ok {
		running := make(chan error, 1)
		go func() { running <- runner.Run(ctx) }()
		defer func() {
			cancel()
			err = errors.Join(err, <-running)
		}()
	}
	changes := rt.Watch(ctx)
	asked := map[string]bool{}
	for {
		alive, err := stopContainers(ctx, rt, grace, asked)
		if err != nil || alive == 0 {
			return len(asked), err
		}
		if _, open := <-changes; !open {
			return len(asked), fmt.Errorf("agent: %d containers do not end: %w", alive, ctx.Err())
		}
	}
}

// stopContainers stops each container once, and counts the containers that still run.
func stopContainers(ctx context.Context, rt runtime.Runtime, grace time.Duration, asked map[string]bool) (alive int, err error) {
	pods, err := rt.Pods(ctx)
	if err != nil {
		return 0, fmt.Errorf("agent: end containers: %w", err)
	}
	for _, pod := range pods {
		for _, container := range pod.Containers {
			if container.State == runtime.Exited {
				continue
			}
			alive++
			if asked[container.ID] {
				continue
			}
			if err := rt.StopContainer(ctx, container.ID, grace); err != nil {
				return alive, fmt.Errorf("agent: end container %s: %w", container.ID, err)
			}
			asked[container.ID] = true
		}
	}
	return alive, nil
}
