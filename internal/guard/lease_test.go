package guard_test

import (
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

// A lease that could not be renewed while the API server was down is not late when the server is back.
func TestJudge_LeaseIsNotLateForTheTimeThatTheAPIServerWasDown(t *testing.T) {
	e := well(begin)
	e.Lease.Value.Renewed, e.Lease.Value.Seen = begin.Add(-time.Hour), time.Time{}
	e.Process.Value.Started = begin.Add(-2 * time.Hour)
	if got := guard.LeaseAge(guard.State{APISince: begin.Add(-5 * time.Second)}, e, begin); got != 5*time.Second {
		t.Errorf("the lease is late by %s, want the 5 s since the API server answers", got)
	}
}
