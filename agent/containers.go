package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process"
)

// EndContainers ends the containers that an agent of this config has left running, as the
// shutdown of a machine would: SIGTERM, and SIGKILL after the grace. How each has ended is
// recorded for the next agent. It must not be called while an agent runs. It returns how
// many there were.
func EndContainers(ctx context.Context, config Config, grace time.Duration) (ended int, err error) {
	rt, err := process.New(process.Options{Dir: filepath.Join(config.StateDir, runtimeDirectory)})
	if err != nil {
		return 0, fmt.Errorf("agent: end containers: %w", err)
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	running := make(chan error, 1)
	go func() { running <- rt.Run(ctx) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-running)
	}()

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

// stopContainers asks each container that is not asked yet, and counts those that still run.
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
