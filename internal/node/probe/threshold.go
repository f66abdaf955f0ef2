package probe

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// result is what one probe found, or what a series of them amounts to.
type result int

const (
	// unknown is a probe that could not be carried out, or a series that is too short.
	unknown result = iota
	success
	failure
)

func (r result) String() string { return [...]string{"unknown", "success", "failure"}[r] }

// schedule is when a probe runs and how many equal results count (the API's defaults apply
// where the spec says nothing, as for pods that no API server has seen).
type schedule struct {
	initialDelay, period, timeout time.Duration
	successes, failures           int
}

func scheduleOf(p *v1.Probe) schedule {
	return schedule{
		initialDelay: seconds(p.InitialDelaySeconds),
		period:       seconds(positive(p.PeriodSeconds, 10)),
		timeout:      seconds(positive(p.TimeoutSeconds, 1)),
		successes:    int(positive(p.SuccessThreshold, 1)),
		failures:     int(positive(p.FailureThreshold, 3)),
	}
}

// clockSlack is how far a start may lie in the future without the clock having stepped.
const clockSlack = time.Second

// first is how long the first probe of a run has to wait. A start that lies in the future
// was recorded before the clock was set back: how long the container has been running is
// unknown, and waiting for the clock to catch up could take days.
func (s schedule) first(startedAt, now time.Time) time.Duration {
	ran := now.Sub(startedAt)
	if ran < -clockSlack {
		return 0
	}
	return max(0, s.initialDelay-max(0, ran))
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

func positive(n, otherwise int32) int32 {
	if n > 0 {
		return n
	}
	return otherwise
}

// streak is the current run of equal results (Q8).
type streak struct {
	of     result
	length int
}

// next adds the result of one probe and returns the decision: success or failure once there
// are enough of them in a row, unknown until then. A probe that could not be carried out
// neither counts nor interrupts the streak.
func (s streak) next(found result, limits schedule) (streak, result) {
	if found == unknown {
		return s, unknown
	}
	if found != s.of {
		s = streak{of: found}
	}
	s.length++
	enough := limits.successes
	if found == failure {
		enough = limits.failures
	}
	if s.length < enough {
		return s, unknown
	}
	return s, found
}
