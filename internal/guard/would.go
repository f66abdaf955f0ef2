package guard

import (
	"slices"
	"time"
)

// dryRun is the initiator of restarts that are only noted.
const dryRun = "dry run"

// would adds to the restarts that the guard would have made. A kubelet that stays unhealthy counts once: the effect of a restart is unknown.
func (g *Guard) would(v Verdict, now time.Time) []Restart {
	noted := g.report.Would
	policy := g.o.Policy
	if policy.Restart || policy.Never != "" {
		return noted
	}
	if n := len(noted); n > 0 && !noted[n-1].At.Before(v.Since) {
		return noted
	}
	policy.Restart = true
	history := g.historyLocked()
	history.Restarts = noted
	d := Decide(v, policy, history, now)
	if d.Restart != TargetKubelet {
		return noted
	}
	noted = append(slices.Clone(noted), Restart{At: now, What: d.Restart, By: dryRun, Reason: d.Reason})
	return noted[max(0, len(noted)-keptRestarts):]
}
