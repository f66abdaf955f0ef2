package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/internal/backoff"
)

// Step is one service of an order.
type Step struct {
	guard.Service
	// Ready is asked, again and again, until it returns nil: the runtime answers, the node is registered and its
	// lease renewed. Nil: ready once started.
	Ready func(ctx context.Context) error
	// Within is how long it may take to become ready; 2 minutes if 0.
	Within time.Duration
}

// Order is a number of services, the first of which the others need.
type Order struct {
	Steps []Step
	// Log may be nil.
	Log *slog.Logger
}

// readyEvery spaces the questions whether a service is ready.
var readyEvery = backoff.Schedule{First: 100 * time.Millisecond, Limit: 2 * time.Second}

// Up starts the services in order, each one once the one before is ready. A service that runs already
// is left alone. It stops at the first one that fails, and leaves running what runs.
func (o Order) Up(ctx context.Context) error {
	for _, step := range o.Steps {
		begin := time.Now()
		if err := step.Start(ctx); err != nil {
			return err
		}
		if err := step.await(ctx); err != nil {
			return fmt.Errorf("service: %s is not ready: %w", step.Name(), err)
		}
		o.logger().Info("service is ready", "service", step.Name(), "took", time.Since(begin).Round(time.Millisecond))
	}
	return nil
}

// await asks until the service is ready.
func (s Step) await(ctx context.Context) error {
	if s.Ready == nil {
		return nil
	}
	within := s.Within
	if within == 0 {
		within = 2 * time.Minute
	}
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := s.Ready(waiting)
		if err == nil {
			return nil
		}
		// One that has ended does not become ready; the guard restarts it by its policy.
		if p, unknown := s.State(waiting); unknown == nil && p.Sure && !p.Exists {
			return err
		}
		if !backoff.Sleep(waiting, readyEvery.Random(attempt)) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// Down stops the services in the reverse order, all of them, also if one fails.
func (o Order) Down(ctx context.Context) error {
	var failed []error
	for i := len(o.Steps) - 1; i >= 0; i-- {
		begin := time.Now()
		if err := o.Steps[i].Stop(ctx); err != nil {
			failed = append(failed, err)
			continue
		}
		o.logger().Info("service is stopped", "service", o.Steps[i].Name(), "took", time.Since(begin).Round(time.Millisecond))
	}
	return errors.Join(failed...)
}

func (o Order) logger() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}
