//go:build !race

package audit_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/audit"
)

// These tests simulate hours or draw many cases, which takes minutes under the race detector; the other tests of the
// package show it the same goroutines.

// TestExactlyTheLie: of random nodes with one lie, exactly that lie is found.
func TestExactlyTheLie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, l := range rapid.Permutation(lies).Draw(t, "lies")[:2] {
			checkLie(t, l)
		}
	})
}

// TestNoDriftWithoutALie: sides that lag behind each other by less than news takes are no drift,
// whatever the pods do.
func TestNoDriftWithoutALie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t)
		auditUntil(t, audit.NewAuditor(audit.AuditorOptions{}), n, 0, 3*time.Minute, func(now time.Duration, r audit.Report) {
			for _, d := range r.Differences {
				if d.Drift {
					t.Fatalf("after %v: %s of %s (%s): %s\nsince %v, seen %v, bounds %v\n%v", now, d.Kind, d.Pod.Name, d.Pod.UID, d.Message, d.Since.Sub(epoch), d.Seen.Sub(epoch), r.Propagation, d.Evidence)
				}
			}
		})
	})
}

// TestClockStepsAreNoDrift: a clock that is set says nothing about pods.
func TestClockStepsAreNoDrift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t)
		when, by := ms(t, "step at", 1000, 100000), ms(t, "step", -300000, 300000)
		n.change = func(_ time.Duration, f *audit.Facts) { shift(f, when, by) }
		auditUntil(t, audit.NewAuditor(audit.AuditorOptions{}), n, 0, 150*time.Second, func(now time.Duration, r audit.Report) {
			for _, d := range r.Differences {
				if d.Drift && d.Kind != audit.ClockSkew {
					t.Fatalf("clock set by %v at %v: after %v %s: %s", by, when, now, d.Kind, d.Message)
				}
			}
		})
	})
}
