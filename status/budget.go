package status

import "time"

// budget is a token bucket with the time passed in. A token is taken when the class to be
// served is known and before the pod is chosen, so that a token is never promised to a pod
// that has become the less urgent one. The last tokens are for withdrawals alone.
type budget struct {
	qps     float64 // no limit if zero
	burst   float64
	reserve float64
	tokens  float64
	filled  time.Time
}

// newBudget returns a full bucket, of which a tenth is the reserve. A bucket of one token
// has none: it would leave nothing for the rest.
func newBudget(qps float64, burst int, now time.Time) *budget {
	reserve := min(max(1, burst/10), burst-1)
	return &budget{qps: qps, burst: float64(burst), reserve: float64(reserve), tokens: float64(burst), filled: now}
}

func (b *budget) fill(now time.Time) {
	b.tokens = min(b.burst, b.tokens+max(0, now.Sub(b.filled).Seconds())*b.qps)
	b.filled = now
}

// need is how many tokens must be there for one to be taken.
func (b *budget) need(urgent bool) float64 {
	if urgent {
		return 1
	}
	return 1 + b.reserve
}

// take takes a token if there is one: from the reserve too if it is urgent.
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

// when returns when there will be a token.
func (b *budget) when(now time.Time, urgent bool) time.Time {
	if b.qps == 0 {
		return now
	}
	b.fill(now)
	missing := b.need(urgent) - b.tokens
	if missing <= 0 {
		return now
	}
	// Rounded up: at a time that is too early by a nanosecond there would be no token.
	return now.Add(time.Duration(missing/b.qps*float64(time.Second)) + time.Microsecond)
}
