package status

import "time"

// budget is a token bucket with the time passed in. A token is taken after the class is chosen and
// before the pod is chosen, so that a token is never reserved for a pod that is no longer the most
// urgent. The last tokens are for withdrawals alone.
type budget struct {
	qps     float64 // no limit if zero
	burst   float64
	reserve float64
	tokens  float64
	filled  time.Time
}

// newBudget returns a full bucket whose reserve is a tenth. A bucket of one token has no reserve,
// which would leave nothing for the other classes.
func newBudget(qps float64, burst int, now time.Time) *budget {
	reserve := min(max(1, burst/10), burst-1)
	return &budget{qps: qps, burst: float64(burst), reserve: float64(reserve), tokens: float64(burst), filled: now}
}

func (b *budget) fill(now time.Time) {
	b.tokens = min(b.burst, b.tokens+max(0, now.Sub(b.filled).Seconds())*b.qps)
	b.filled = now
}

// need is how many tokens must be available to take one.
func (b *budget) need(urgent bool) float64 {
	if urgent {
		return 1
	}
	return 1 + b.reserve
}

// take takes a token if one is available, including the reserve if urgent.
func (b *budget) take(now time.Time, urgent bool) bool {
	if b.qps == 0 {
		return true
	}
	b.fill(now)
	if b.tokens < b.need(urgent) {
		return false
	}
	b.tokens--
	return true
}

// charge settles a turn: no request returns the token, each further request costs one.
func (b *budget) charge(requests int) {
	b.tokens = min(b.burst, b.tokens-float64(requests-1))
}

// when returns when the next token is available.
func (b *budget) when(now time.Time, urgent bool) time.Time {
	if b.qps == 0 {
		return now
	}
	b.fill(now)
	missing := b.need(urgent) - b.tokens
	if missing <= 0 {
		return now
	}
	// Rounded up: a nanosecond too early, no token would be available.
	return now.Add(time.Duration(missing/b.qps*float64(time.Second)) + time.Microsecond)
}
