// Package backoff holds the one schedule of waits between tries: exponential, with a limit and
// with jitter. Which values fit is decided by each package that retries.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Schedule is a sequence of waits: First, doubled with each attempt up to Limit. Each wait is
// shortened at random by up to a fifth, so that simultaneous failures are not retried
// simultaneously, and Limit stays the bound.
type Schedule struct {
	First, Limit time.Duration
}

// Wait returns the pause after the given attempt, which counts from 1. The jitter, from 0
// to 1, is how much of the fifth is taken off.
func (s Schedule) Wait(attempt int, jitter float64) time.Duration {
	d := s.Limit
	if doublings := attempt - 1; doublings < 32 && s.First<<doublings < s.Limit {
		d = s.First << doublings
	}
	return d - time.Duration(jitter*float64(d/5))
}

// Random returns [Schedule.Wait] with random jitter.
func (s Schedule) Random(attempt int) time.Duration { return s.Wait(attempt, rand.Float64()) }

// Sleep waits for d or until ctx ends. Sleep reports whether ctx still lasts, also if both end together.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
