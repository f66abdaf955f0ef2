package audit_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/audit"
)

// drawNode draws a node with pods of random sorts, and lags up to what news takes on it.
func drawNode(t *rapid.T, atLeast ...string) *simNode {
	n := &simNode{own: rapid.Bool().Draw(t, "own"), poll: ms(t, "poll", 200, 3000), lagRuntime: ms(t, "runtime lag", 0, 300)}
	kubelet, api := rapid.IntRange(50, 1500).Draw(t, "kubelet lag"), rapid.IntRange(20, 2500).Draw(t, "API lag")
	lag := func(label string, most int) func() time.Duration {
		return func() time.Duration { return ms(t, label, 0, most) }
	}
	chosen := slices.Concat(atLeast, rapid.SliceOfN(rapid.SampledFrom(sorts), 1, 6).Draw(t, "sorts"))
	for i, sort := range chosen {
		name := rapid.SampledFrom([]string{"web", "db", "api"}).Draw(t, "name")
		for _, s := range live(t, sort, name, i) {
			s.finish(lag("to kubelet", kubelet), lag("to API", api))
			n.pods = append(n.pods, s)
		}
	}
	return n
}

// auditUntil runs an auditor from one instant to another, at a random pace.
func auditUntil(t *rapid.T, a *audit.Auditor, n *simNode, from, to time.Duration, look func(time.Duration, audit.Report)) {
	pace := ms(t, "pace", 300, 1000)
	for now := from; now <= to; now += pace {
		look(now, a.Audit(n.facts(now)))
	}
}

func drifts(r audit.Report) []string {
	var list []string
	for _, d := range r.Differences {
		if d.Drift {
			list = append(list, fmt.Sprintf("%s %s/%s %s", d.Kind, d.Pod.UID, d.Pod.Name, d.Container))
		}
	}
	return list
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
