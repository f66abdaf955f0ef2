package status

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
)

// decision is what the API server has made of a version: it has stored something else than
// was sent, and does so again when it is sent again. A server that lacks a field, a feature
// gate that is off, or a webhook decides so. A decision is no end: a webhook is rolled back, and
// a server is upgraded. So the status is sent again when the decision expires, and earlier if
// anything shows that the decider may be gone. Until then [Manager.Pending] names the pod.
type decision struct {
	version uint64
	// couldRun distinguishes the write with a terminal phase from the one before, without it.
	couldRun bool
	status   *v1.PodStatus // the answer; never changed
	// grave: the API's pod differs in its readiness or in its end. Such a version does not count
	// as accepted.
	grave bool
	// tried is when the server last decided so, until how long the decision is not questioned.
	tried, until time.Time
}

var (
	// graveBackoff spaces the tries of a status whose readiness or end the server overrules.
	// Traffic and controllers act on what it stores instead. A kubelet tries every 10 s.
	graveBackoff = backoff.Schedule{First: 2 * time.Second, Limit: 10 * time.Second}
	// overruledBackoff spaces the tries of a status of which the server overrules the rest: at most a
	// minute after the decider is gone the API has the status, the turn included.
	overruledBackoff = backoff.Schedule{First: 50 * time.Second, Limit: 50 * time.Second}
)

// questionPause is how long a decision stands at least, whatever hints at its end.
const questionPause = 5 * time.Second

var (
	// errOverruled is why a version is not accepted although its write succeeded.
	errOverruled = errors.New("the API server stored another readiness or phase than was sent, as a mutating webhook does")
	// errStoredOtherwise is why Flush does not wait any longer.
	errStoredOtherwise = errors.New("the API server stores something else than was sent")
)

// mergedKeys are the fields of a status of which a patch sends parts. If the answer differs in
// one of them, the base may have been old.
var mergedKeys = map[string]bool{
	"conditions": true, "podIPs": true, "hostIPs": true, "resources": true, "allocatedResources": true,
}

// overruled reports whether the answer to a write, which differs from what was written, is the
// server's decision: each field that differs was sent whole; or the write has changed nothing
// of what this node owns.
func (t *turn) overruled(p *plan, patch []byte, answer base, merged *v1.PodStatus) bool {
	left, err := t.m.owns.Patch(p.target, answer.status, merged)
	if err != nil {
		return false
	}
	sent, differing := keysOf(patch), keysOf(left)
	if len(differing) == 0 {
		return false
	}
	whole := true
	for key := range differing {
		whole = whole && sent[key] && !mergedKeys[key]
	}
	return whole || !t.m.owns.NeedsReconcile(p.pod, answer.status, p.base.status)
}

// keysOf returns the fields of the status that a patch mentions.
func keysOf(patch []byte) map[string]bool {
	var body struct {
		Status map[string]json.RawMessage `json:"status"`
	}
	if json.Unmarshal(patch, &body) != nil {
		return nil
	}
	keys := make(map[string]bool, len(body.Status))
	for key := range maps.Keys(body.Status) {
		if directive, field, ok := strings.Cut(key, "/"); ok && strings.HasPrefix(directive, "$") {
			key = field
		}
		keys[key] = true
	}
	return keys
}

// holds reports whether the server is not asked again to store a version.
func (d decision) holds(version uint64, couldRun bool, now time.Time) bool {
	return d.status != nil && d.version == version && d.couldRun == couldRun && now.Before(d.until)
}

// schedule spaces the tries of what was decided.
func (d decision) schedule() backoff.Schedule {
	if d.grave {
		return graveBackoff
	}
	return overruledBackoff
}

// graveDifference reports whether an answer differs from what was written in what traffic and
// controllers wait for: readiness, the phase, containers that have ended.
func graveDifference(answer, written *v1.PodStatus) bool {
	return answer.Phase != written.Phase || isReady(answer) != isReady(written) || anyRuns(answer) && !anyRuns(written)
}

// decide takes in that the server has stored something else than was written.
func (t *turn) decide(p *plan, answer base, merged *v1.PodStatus, couldRun bool) {
	now := time.Now()
	d := decision{version: p.version, couldRun: couldRun, status: answer.status, grave: graveDifference(answer.status, merged), tried: now}
	d.until = now.Add(d.schedule().First)
	t.decision, t.overruledNow = d, true
	t.m.metrics.overruled.Inc()
	if p.decision.version != p.version || p.decision.couldRun != couldRun {
		t.m.opts.Logger.Info("API server stored another status than was sent, will try again", "pod", p.podName(), "uid", p.target, "version", p.version, "grave", d.grave)
	}
	t.m.cache.setDecision(p.uid, d)
}

// tryOverruledLater ends a turn after which the API's pod differs by the server's decision.
func (t *turn) tryOverruledLater(p *plan) {
	now, d := time.Now(), t.decision
	wait := max(d.until.Sub(now), time.Second)
	if t.overruledNow {
		var why error
		if d.grave {
			why = errOverruled
		}
		wait = t.m.cache.failed(p.uid, why, waitOverruled, d.schedule(), now)
		d.until = now.Add(wait)
		t.m.cache.setDecision(p.uid, d)
	} else {
		// A write that was accepted since, over what another writer did, has left no reason to wait.
		t.m.cache.waitUntil(p.uid, waitOverruled, now.Add(wait))
	}
	if t.again {
		return
	}
	t.again, t.wait, t.urgency = true, wait, background
	if d.grave {
		t.urgency = p.urgency()
	}
}

// setDecision records what the server has made of a version.
func (c *cache) setDecision(uid types.UID, d decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[uid]; ok {
		c.decisions[uid] = d
	}
}

// endDecision forgets a decision: the API's pod is as it should be.
func (c *cache) endDecision(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.decisions, uid)
}

// question ends the standing of a decision, unless it is as good as new. It reports whether the
// status is to be sent again.
func (c *cache) question(uid types.UID, d decision, now time.Time) bool {
	if now.Sub(d.tried) < questionPause {
		return false
	}
	d.until = now
	c.decisions[uid] = d
	return true
}

// storedAsSent takes in that the server has stored a status as it was sent, and returns the overruled
// pods that are worth another try for it: all if it has overruled this one before, else those of
// which traffic and controllers see something wrong.
func (c *cache) storedAsSent(uid types.UID, now time.Time) []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, before := c.decisions[uid]
	delete(c.decisions, uid)
	var again []types.UID
	for other, d := range c.decisions {
		if (before || d.grave) && c.question(other, d, now) {
			again = append(again, other)
		}
	}
	return again
}

// questionAll ends the standing of all decisions, and returns how often each of the pods was tried.
func (c *cache) questionAll(now time.Time) map[types.UID]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	tries := make(map[types.UID]int, len(c.decisions))
	for uid, d := range c.decisions {
		if e := c.entries[uid]; e.waitsFor() == waitOverruled {
			d.until = now
			c.decisions[uid] = d
			tries[uid] = e.backlog.attempts
		}
	}
	return tries
}

// overruledAgain returns the pods that the server has overruled once more, and whether all have been
// tried. The channel is closed when that may have changed.
func (c *cache) overruledAgain(tries map[types.UID]int) (left []Pending, all bool, progress <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all = true
	for uid, before := range tries {
		e, ok := c.entries[uid]
		if !ok || e.waitsFor() != waitOverruled {
			continue
		}
		all = all && e.backlog.attempts > before
		left = append(left, c.describe(uid, e))
	}
	slices.SortFunc(left, func(a, b Pending) int { return compareNames(a.Namespace, a.Name, b.Namespace, b.Name) })
	return left, all, c.progress
}

// flushOverruled waits until the server was asked once more to store what it overrules. The error
// names the pods of which it still does: they are not delivered.
func (m *Manager) flushOverruled(ctx context.Context, s *session, tries map[types.UID]int) error {
	for {
		left, all, progress := m.cache.overruledAgain(tries)
		switch {
		case len(left) == 0:
			return nil
		case all:
			return &FlushError{Left: left, err: errStoredOtherwise}
		}
		select {
		case <-ctx.Done():
			return &FlushError{Left: left, err: ctx.Err()}
		case <-s.done:
			return &FlushError{Left: left, err: ErrNotRunning}
		case <-progress:
		}
	}
}

// retryOverruled has overruled pods tried again.
func (m *Manager) retryOverruled(uids iter.Seq[types.UID], now time.Time) {
	for uid := range uids {
		m.engine.changed(turnRequest{uid: uid, urgency: background, at: now, expedite: true})
	}
}
