package audit_test

import (
	"fmt"
	"slices"
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
