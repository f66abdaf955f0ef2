package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/runtime"
)

// A runtime whose Exec does not end with its context costs one call, not one per probe, and the
// probe fails.
func TestAnExecThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		release := make(chan struct{})
		e := &execer{hanging: map[string]int{}, exec: func(ctx context.Context, id string, _ []string) (runtime.ExecResult, error) {
			calls.Add(1)
			if id == "stuck" {
				<-release
			}
			return runtime.ExecResult{ExitCode: 7}, nil
		}}
		ask := func(id string) (runtime.ExecResult, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return e.run(ctx, id, nil)
		}
		for range 10 {
			if _, err := ask("stuck"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want a timeout", err)
			}
		}
		if got, err := ask("other"); err != nil || got.ExitCode != 7 {
			t.Errorf("beside it: got %+v, %v; want exit code 7", got, err)
		}
		if calls.Load() != 2 {
			t.Errorf("the runtime was called %d times, want once for each container", calls.Load())
		}
		close(release)
		synctest.Wait()
		if got, err := ask("stuck"); err != nil || got.ExitCode != 7 {
			t.Errorf("afterwards: got %+v, %v; want exit code 7", got, err)
		}
	})
}
