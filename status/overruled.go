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

// decision is the API server's change of a version: the server has stored something else than was
// sent, and does so again when the version is sent again. The cause is a server that lacks a field,
// a disabled feature gate, or a webhook. A decision is not final: webhooks are rolled back, and
// servers are upgraded. So the status is sent again when the decision expires, or earlier on signs
// that the cause is gone. Until then [Manager.Pending] lists the pod.
type decision struct {
	version uint64
	// couldRun distinguishes the write with a terminal phase from the earlier write without it.
	couldRun bool
	status   *v1.PodStatus // the answer; never changed
	// grave: the API's pod differs in its readiness or in its end. Such a version does not count
	// as accepted.
	grave bool
	// tried is when the server last made this decision, until the time before which the status is
	// not sent again.
	tried, until time.Time
}

var (
	// graveBackoff spaces the tries of a status whose readiness or end the server overrules.
	// Traffic and controllers act on what it stores instead. A kubelet tries every 10 s.
	graveBackoff = backoff.Schedule{First: 2 * time.Second, Limit: 10 * time.Second}
	// overruledBackoff spaces the attempts for a status whose other fields the server overrules: at
	// most a minute after the cause is gone, the API has the status, including the time of the turn.
	overruledBackoff = backoff.Schedule{First: 50 * time.Second, Limit: 50 * time.Second}
)

// questionPause is how long a decision holds at least, whatever the signs of its end.
const questionPause = 5 * time.Second

var (
	// errOverruled is why a version is not accepted although its write succeeded.
	errOverruled = errors.New("the API server stored another readiness or phase than was sent, as a mutating webhook does")
	// errStoredOtherwise is why Flush does not wait any longer.
	errStoredOtherwise = errors.New("the API server stores something else than was sent")
)

// mergedKeys are the fields of a status that a patch sends in part. If the response differs in one
// of them, the base may have been old.
var mergedKeys = map[string]bool{
	"conditions": true, "podIPs": true, "hostIPs": true, "resources": true, "allocatedResources": true,
}

// overruled reports whether a response that differs from the write is the server's decision: each
// differing field was sent whole; or the write has changed no field that this node owns.
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

// holds reports whether a version is not sent again yet.
func (d decision) holds(version uint64, couldRun bool, now time.Time) bool {
	return d.status != nil && d.version == version && d.couldRun == couldRun && now.Before(d.until)
}

// schedule spaces the attempts after a decision.
func (d decision) schedule() backoff.Schedule {
	if d.grave {
		return graveBackoff
	}
	return overruledBackoff
}

// graveDifference reports whether a response differs from the write in fields that traffic and
// controllers depend on: readiness, the phase, terminated containers.
func graveDifference(answer, written *v1.PodStatus) bool {
	return answer.Phase != written.Phase || isReady(answer) != isReady(written) || anyRuns(answer) && !anyRuns(written)
}

// decide records that the server has stored something else than was written.
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

// setDecision records the server's decision about a version.
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

// question ends the hold of a decision, unless the decision is too recent. It reports whether the
// status must be sent again.
func (c *cache) question(uid types.UID, d decision, now time.Time) bool {
	if now.Sub(d.tried) < questionPause {
		return false
	}
	d.until = now
	c.decisions[uid] = d
	return true
}

// storedAsSent records that the server has stored a status as sent, and returns the overruled pods to
// try again: all overruled pods if this pod was overruled before, else the pods with a grave
// difference.
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

// questionAll ends the hold of all decisions, and returns how often each of the pods was tried.
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

// flushOverruled waits until the overruled statuses were sent once more. The error names the pods
// whose statuses are still overruled: they are not delivered.
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

// retryOverruled schedules turns for overruled pods.
func (m *Manager) retryOverruled(uids iter.Seq[types.UID], now time.Time) {
	for uid := range uids {
		m.engine.changed(turnRequest{uid: uid, urgency: background, at: now, expedite: true})
	}
}
