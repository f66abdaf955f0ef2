package nodeclient

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
)

// After an outage of half an hour the container runtime is seen as soon as after one of a second.
func TestRuntime_ConnectsSoonAfterALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last time.Time
		var longest time.Duration
		least := time.Hour // that a try may take
		down := func(ctx context.Context, _ string) (net.Conn, error) {
			end, _ := ctx.Deadline()
			least = min(least, time.Until(end))
			if !last.IsZero() {
				longest = max(longest, time.Since(last))
			}
			last = time.Now()
			return nil, errors.New("connection refused")
		}
		conn, err := grpc.NewClient("passthrough:///runtime", options(down)...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		if err := conn.Invoke(ctx, "/runtime/Version", nil, nil, grpc.WaitForReady(true)); err == nil {
			t.Fatal("a runtime that is down answers")
		}
		if longest == 0 || longest > 2*time.Second {
			t.Errorf("got up to %s between two tries, want at most 2 s", longest)
		}
		if least < 10*time.Second {
			t.Errorf("a try may take %s, want 10 s at least: a runtime on a busy machine is slow", least)
		}
	})
}
