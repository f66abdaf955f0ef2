package status

import "time"

// budget is a token bucket with the time passed in. A token is taken before the pod is
// chosen, so that a token is never promised to a pod that has become the less urgent one.
type budget struct {
	qps    float64 // no limit if zero
	burst  float64
	tokens float64
	filled time.Time
}

func newBudget(qps float64, burst int, now time.Time) *budget {
	return &budget{qps: qps, burst: float64(burst), tokens: float64(burst), filled: now}
}

func (b *budget) fill(now time.Time) {
	b.tokens = min(b.burst, b.tokens+now.Sub(b.filled).Seconds()*b.qps)
	b.filled = now
}

// take takes a token if there is one.
func (b *budget) take(now time.Time) bool {
	if b.qps == 0 {
		return true
	}
	b.fill(now)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// charge corrects the bill once it is known how many requests a token was used for:
// none gives the token back, a second request is paid for later.
func (b *budget) charge(requests int) {
	b.tokens = min(b.burst, b.tokens-float64(requests-1))
}

// when tells when there will be a token.
func (b *budget) when(now time.Time) time.Time {
	if b.qps == 0 {
		return now
	}
	b.fill(now)
	if b.tokens >= 1 {
		return now
	}
	// Rounded up: at a time that is too early by a nanosecond there would be no token.
	return now.Add(time.Duration((1-b.tokens)/b.qps*float64(time.Second)) + time.Microsecond)
}
