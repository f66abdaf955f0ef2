package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// detailWait is how long a report that changes only details waits for the next report of the pod, see
// [podrules.Ownership.OnlyDetails]. A pod that starts is running moments after it has a sandbox, and a pod in deletion ends
// moments after the node knows of the deletion: one write has both.
const detailWait = time.Second

// waitsWithDetails puts off a write that has only details, once for all reports since the last write. A pod that is read in this turn
// is written, so that no read is repeated.
func (t *turn) waitsWithDetails(p *plan, merged *v1.PodStatus) bool {
	if !p.fresh || t.read || p.final() || !t.m.owns.OnlyDetails(p.pod, p.base.status, merged) {
		return false
	}
	wait := t.m.cache.putOff(p.uid, time.Now())
	if wait <= 0 {
		return false
	}
	t.again, t.wait, t.urgency = true, wait, normal
	return true
}

// putOff returns how long the details of a pod wait for its next report, zero or less if they waited long enough, or if Flush waits
// for them.
func (c *cache) putOff(uid types.UID, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok || !e.pending() || e.backlog.flushed {
		return 0
	}
	wait := e.backlog.since.Add(detailWait).Sub(now)
	if wait > 0 {
		e.backlog.reason, e.backlog.nextTry = waitDetails, now.Add(wait)
	}
	return wait
}

// sendDetails ends the wait of details that Flush waits for, and returns the pods that wait.
func (c *cache) sendDetails(wanted map[types.UID]goal) (waiting []types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid := range wanted {
		e, ok := c.unsent[uid]
		if !ok {
			continue
		}
		e.backlog.flushed = true
		if e.waitsFor() == waitDetails {
			waiting = append(waiting, uid)
		}
	}
	return waiting
}
