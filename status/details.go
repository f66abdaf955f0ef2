package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
)

// A report that changes only details is sent at once while such reports are few. In a burst, as when many pods start, it waits for the
// pod's next report, so that one write has both, see [podrules.Ownership.OnlyDetails].

// A write of details alone takes a token, and waits without one. A pod that starts or stops on a quiet node has each state in the API;
// the 100 pods of a burst share the tokens.
const (
	detailTokens = 10
	detailsEvery = 5 * time.Second // until a token is back
)

func newDetailBudget() *budget {
	return newBudget(1/detailsEvery.Seconds(), detailTokens, time.Time{})
}

// waitForDetails is the schedule of details of a pod.
func waitForDetails(pod *v1.Pod) backoff.Schedule {
	if pod.DeletionTimestamp != nil {
		return lastDetailBackoff
	}
	return detailBackoff
}

// waitsWithDetails puts off a write that has only details, if there are many. The wait begins with the first report since the last write. A pod that is read
// in this turn is written, so that no read is repeated.
func (t *turn) waitsWithDetails(p *plan, merged *v1.PodStatus) bool {
	withheld := merged.Phase != p.status.Phase
	if !p.fresh || t.read || withheld || p.finished || !t.m.owns.OnlyDetails(p.pod, p.base.status, merged) {
		return false
	}
	wait := t.m.cache.putOff(p.uid, waitForDetails(p.pod), time.Now())
	if wait <= 0 {
		return false
	}
	t.again, t.wait, t.urgency = true, wait, normal
	return true
}

// diesWithDetails reports whether what a write would change goes with the pod: the API has its end, nothing keeps the API server from
// deleting it now, and only details differ. If the deletion fails, they are written.
func (t *turn) diesWithDetails(p *plan, merged *v1.PodStatus) bool {
	return p.fresh && p.finished && p.base.ended && len(p.pod.Finalizers) == 0 && t.m.owns.OnlyDetails(p.pod, p.base.status, merged)
}

// putOff returns how long the details of a pod wait for its next report, zero or less if details are few, if they waited long enough,
// or if Flush waits for them.
func (c *cache) putOff(uid types.UID, schedule backoff.Schedule, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok || !e.pending() || e.backlog.flushed {
		return 0
	}
	if e.backlog.reason != waitDetails {
		if c.details.take(now, true) {
			return 0
		}
		e.backlog.reason, e.backlog.nextTry = waitDetails, e.backlog.since.Add(schedule.Wait(1, c.jitter()))
	}
	return e.backlog.nextTry.Sub(now)
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
