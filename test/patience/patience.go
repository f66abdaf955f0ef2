// Package patience bounds what tests wait for by the one bound that says nothing about the speed of a machine: the deadline of
// the test run.
package patience

import (
	"context"
	"errors"
	"testing"
	"time"
)

// left is how long before the deadline a wait is given up, so that the test can report the missing state and clean
// up.
const left = 20 * time.Second

// Context ends with the test, or shortly before the time limit of the test run. A test waits for a state with this context,
// without a bound of its own: on a machine under load the duration of a start is unknown.
func Context(t testing.TB) (context.Context, context.CancelFunc) {
	if timed, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := timed.Deadline(); ok {
			return context.WithDeadlineCause(t.Context(), deadline.Add(-left), errors.New("the time of the test run is over"))
		}
	}
	return context.WithCancel(t.Context())
}
