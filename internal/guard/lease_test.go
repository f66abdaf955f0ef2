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

// A lease that another writer renews, with whatever time, speaks neither against a kubelet that works nor for one that does not.
func TestJudge_LeaseOfAnotherWriter_SaysNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		stopped bool
		renewed time.Duration // before now
		want    guard.Health
	}{
		{"a kubelet that works, and a renewal of long ago", false, time.Hour, guard.Healthy},
		{"a kubelet that was found stopped, and a renewal of now", true, 0, guard.Unhealthy},
	} {
		var state guard.State
		var v guard.Verdict
		for i := range 60 {
			now := begin.Add(time.Duration(i) * lookEvery)
			e := evidence(nil, now)
			e.Writes = guard.Read(now, accepted)
			if i > 2 {
				e.Process.Value.Sure, e.Process.Value.Stopped = false, c.stopped
				e.Lease.Value.Renewed, e.Lease.Value.Foreign, e.Lease.Value.Writer = now.Add(-c.renewed), true, "meddler"
			}
			v, state = guard.Judge(e, state, now)
			if i > 10 && v.Health != c.want {
				t.Fatalf("%s: after %d s: got %s (%v), want %s", c.name, i*3, v.Health, v.Reasons, c.want)
			}
		}
	}
}
