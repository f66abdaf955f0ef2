package guard_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/guard"
)

// forget makes random parts of the evidence unknown.
func forget(t *rapid.T, e *guard.Evidence, now time.Time) {
	drop := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
	if drop("process") {
		e.Process = guard.NotKnown[guard.Process](now, "no D-Bus")
	}
	if drop("healthz") {
		e.Healthz = guard.NotKnown[guard.Answer](now, "not asked")
	}
	if drop("parts") {
		e.Parts = nil
	}
	if drop("lease") {
		e.Lease = guard.NotKnown[guard.Lease](now, "forbidden")
	}
	if drop("metrics") {
		e.PLEG, e.Operations = guard.NotKnown[guard.PLEG](now, "forbidden"), guard.NotKnown[guard.Operations](now, "forbidden")
	}
	if drop("runtime") {
		e.Runtime = guard.NotKnown[guard.Answer](now, "no socket")
	}
	if drop("audit") {
		e.Behind = guard.Fact[guard.Behind]{}
	}
	if drop("api") {
		e.APIServer = guard.NotKnown[guard.Answer](now, "no kubeconfig")
	}
	if drop("machine") {
		e.Disk, e.Certificate = guard.Fact[guard.Disk]{}, guard.Fact[time.Time]{}
	}
}

// failOne makes one request fail, in one of the ways that there are.
func failOne(t *rapid.T, e *guard.Evidence, now time.Time) {
	answer := rapid.SampledFrom([]guard.Answer{silent("refused"), silent("timeout"), says("[-]syncloop failed")}).Draw(t, "answer")
	switch rapid.SampledFrom([]string{"healthz", "part", "runtime", "api"}).Draw(t, "request") {
	case "healthz":
		e.Healthz = guard.Read(now, answer)
	case "part":
		name := rapid.SampledFrom([]string{"ping", "log", "syncloop"}).Draw(t, "part")
		e.Parts = map[string]guard.Fact[guard.Answer]{name: guard.Read(now, answer)}
	case "runtime":
		e.Runtime = guard.Read(now, answer)
	case "api":
		e.APIServer = guard.Read(now, answer)
		e.Lease = guard.NotKnown[guard.Lease](now, answer.Text)
	}
}

// Whatever is unknown at whichever look, and with at most one failed request among all of them, a
// kubelet that works is never called unhealthy, and never restarted.
func TestOneFailedRequestAndUnknownEvidenceAreNeverUnhealthy(t *testing.T) {
	policy := guard.DefaultPolicy()
	policy.Restart, policy.RestartRuntime = true, true
	rapid.Check(t, func(t *rapid.T) {
		var state guard.State
		var v guard.Verdict
		looks := rapid.IntRange(1, 60).Draw(t, "looks")
		failing := rapid.IntRange(-1, looks-1).Draw(t, "the look with a failed request")
		now := begin
		for i := range looks {
			e := well(now)
			forget(t, &e, now)
			if i == failing {
				failOne(t, &e, now)
			}
			v, state = guard.Judge(e, state, now)
			if v.Health == guard.Unhealthy {
				t.Fatalf("look %d: %s %+v", i, describe(v), v.Reasons)
			}
			if d := guard.Decide(v, policy, guard.History{Process: e.Process}, now); d.Restart != "" {
				t.Fatalf("look %d: restarts the %s: %s", i, d.Restart, d.Reason)
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "seconds")) * time.Second)
		}
	})
}

// The state that Judge gets is not changed: the same call gives the same verdict.
func TestJudgeIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		story := rapid.SampledFrom(stories).Draw(t, "story")
		var state guard.State
		for now := begin; now.Before(begin.Add(2 * time.Minute)); now = now.Add(lookEvery) {
			e := evidence(story.changes, now)
			first, next := guard.Judge(e, state, now)
			second, again := guard.Judge(e, state, now)
			if describe(first) != describe(second) || len(next.Signs) != len(again.Signs) {
				t.Fatalf("%s, and then %s", describe(first), describe(second))
			}
			state = next
		}
	})
}
