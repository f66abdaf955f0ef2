package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/statusd/statusd/runtime"
)

// execPatience is how long a runtime may take to kill a command.
const execPatience = 2 * time.Second

// execer runs commands inside containers and returns when the context ends, even if the runtime
// does not: a probe without a result would keep its last result forever. While a call hangs,
// further calls for the container fail.
type execer struct {
	exec func(ctx context.Context, id string, command []string) (runtime.ExecResult, error)

	mu      sync.Mutex // guards hanging
	hanging map[string]int
}

func newExecer(rt runtime.Runtime) *execer {
	return &execer{exec: rt.Exec, hanging: map[string]int{}}
}

func (e *execer) run(ctx context.Context, id string, command []string) (runtime.ExecResult, error) {
	if e.hangs(id) {
		return runtime.ExecResult{}, fmt.Errorf("agent: exec in %s: an earlier command has not ended: %w", id, context.DeadlineExceeded)
	}
	type outcome struct {
		result runtime.ExecResult
		err    error
	}
	done := make(chan outcome, 1) // so that a late result does not block
	go func() {
		result, err := e.exec(ctx, id, command)
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done: // it has killed the command
		return o.result, o.err
	case <-time.After(execPatience):
	}
	e.note(id, 1)
	go func() {
		<-done
		e.note(id, -1)
	}()
	return runtime.ExecResult{}, ctx.Err()
}

func (e *execer) hangs(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hanging[id] > 0
}

// note counts the calls that hang.
func (e *execer) note(id string, change int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hanging[id] += change; e.hanging[id] == 0 {
		delete(e.hanging, id)
	}
}
