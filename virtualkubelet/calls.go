package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// slowCall is how long a call counts as one of [Options.Calls].
	slowCall = 5 * time.Second
	// stopPatience is how long Run waits for calls when it ends.
	stopPatience = 5 * time.Second
)

var errLeft = errors.New("the provider has not returned, and the node stops")

// calls makes the calls of the provider.
type calls struct {
	slots   chan struct{} // capacity: the calls that may be under way at once
	timeout time.Duration
	log     *slog.Logger
	counted *prometheus.CounterVec
}

// do calls the provider, for a pod or for none, and waits until it returns, or until a while after ctx has ended. A panic is an error.
func (c *calls) do(ctx context.Context, method, pod string, call func(context.Context) error) error {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	done := make(chan error, 1) // so that an abandoned call can end
	go func() { done <- unpanicked(method, bounded, call) }()
	late := context.AfterFunc(bounded, func() {
		if ctx.Err() == nil {
			c.log.Warn("a call of the provider has not returned in time", "method", method, "pod", pod, "timeout", c.timeout)
		}
	})
	err := c.wait(ctx, done)
	late()
	result := "ok"
	if err != nil && !isNotFound(err) {
		result = "error"
	}
	c.counted.WithLabelValues(method, result).Inc()
	return err
}

func (c *calls) wait(ctx context.Context, done <-chan error) error {
	slow := time.NewTimer(slowCall)
	defer slow.Stop()
	stopping := ctx.Done()
	var left <-chan time.Time
	holds := true
	release := func() {
		if holds {
			holds = false
			<-c.slots
		}
	}
	defer release()
	for {
		select {
		case err := <-done:
			return err
		case <-slow.C:
			release()
		case <-stopping:
			stopping, left = nil, time.After(stopPatience)
		case <-left:
			return errLeft
		}
	}
}

func unpanicked(method string, ctx context.Context, call func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the provider panicked in %s: %v\n%s", method, p, debug.Stack())
		}
	}()
	return call(ctx)
}

// isNotFound reports whether an error of a provider means that the pod does not exist.
func isNotFound(err error) bool {
	var kind interface{ NotFound() bool }
	return apierrors.IsNotFound(err) || errors.As(err, &kind) && kind.NotFound()
}
