// Package pace runs a reading at a bounded rate: at a fixed interval by default, earlier on
// request, later while it fails.
package pace

import (
	"context"
	"errors"
	"time"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
)

// Loop is when to look. Make it with [New].
type Loop struct {
	pace, least time.Duration
	retries     backoff.Schedule
	asked       chan struct{}
}

// New makes a loop that reads at an interval, and on request, but never twice within the least
// time.
func New(pace, least time.Duration) (*Loop, error) {
	if pace <= 0 || least <= 0 || least > pace {
		return nil, errors.New("the pace must be positive, and not faster than the least time between two looks")
	}
	return &Loop{pace: pace, least: least, retries: backoff.Schedule{First: least, Limit: pace}, asked: make(chan struct{}, 1)}, nil
}

// Refresh requests an early reading. Refresh never blocks; requests before the next reading are merged.
func (l *Loop) Refresh() { wake.Up(l.asked) }

// Run looks until ctx ends. A look that fails is repeated with back-off, at the pace at the latest.
func (l *Loop) Run(ctx context.Context, look func(context.Context) error) {
	failures := 0
	for ctx.Err() == nil {
		wait := l.pace
		if err := look(ctx); err != nil {
			failures++
			wait = l.retries.Random(failures)
		} else {
			failures = 0
		}
		if !backoff.Sleep(ctx, min(l.least, wait)) {
			return
		}
		l.sleep(ctx, wait-l.least)
	}
}

// sleep waits for d, for a request or for the end of ctx.
func (l *Loop) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.asked:
	case <-timer.C:
	}
}
