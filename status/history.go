package status

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/instant"
)

// Resource versions order the copies of a pod until the server is restored from a backup. A
// restored server assigns versions a second time, and a base from before the restore would look
// newer than the current pod forever. Two rules prevent that:
//
//   - The response to the manager's own request is the newest copy, whatever its version, see
//     [cache.rebase]. Only copies of the watch are compared by version.
//   - If the watch's copy stays older than the base, either the watch hangs or the server was
//     restored. The manager then reads the pod.
//
// A watch from before the restore delivers nothing until the server has reached the watch's version
// again, so the watch alone is not enough: if the server's response to a request is older than the
// newest version known before the request, the server was restored, and all pods are read. While no
// other response shows that the server's version grows, the manager requests the version.

// behindBackoff is how long the watch's copy of a pod may be older than the base before the pod is
// read, and how long until it is read again if that changed nothing: a watch lags by milliseconds,
// and a watch that hangs for longer costs few reads.
var behindBackoff = backoff.Schedule{First: 15 * time.Second, Limit: 10 * time.Minute}

// A watch that lags behind a burst lags for all pods of the node. If it is behind more than readAlone pods, one list
// shows for all of them whether the server still has their bases. The next list begins listEvery after it at the
// earliest, and a list that takes longer than listWithin is given up: a restore must be found within a minute.
const (
	readAlone  = 8
	listEvery  = 20 * time.Second
	listWithin = 10 * time.Second
)

// behind is a pod whose base is newer than the watch's copy.
type behind struct {
	watch, base revision
	// lookAt is when the pod must be read, looks how often it was read. Overdue: the pod must be read, in a turn or in
	// a list. Look: the pod must be read in its next turn.
	lookAt  time.Time
	looks   int
	overdue bool
	look    bool
	// undone is the revision of a watch's copy that the server has provably lost: its response to a
	// later request has an older revision.
	undone revision
}

// takeIn compares a copy from the watch with the base and makes it the base if it is newer. It
// reports whether the copy was newer, and whether the pod must be read instead, in its next turn.
func (c *cache) takeIn(uid types.UID, e *entry, seen base, now time.Time) (news, look bool) {
	b := c.behinds[uid]
	switch {
	case b.undone != 0 && b.undone == seen.revision:
		return false, false
	case seen.supersedes(e.base):
		e.base = seen
		delete(c.behinds, uid)
		return true, false
	case seen.revision == e.base.revision && !seen.matches(c.owns, c.target(uid), e.base.status):
		// The server has given a version out again, and to something else; or it has no versions, as a fake clientset,
		// and what came last is taken for the newest.
		e.base = seen
		delete(c.behinds, uid)
		return true, false
	case seen.revision >= e.base.revision: // an echo of our own write
		delete(c.behinds, uid)
		return false, false
	case b.watch != seen.revision || b.base != e.base.revision:
		b = behind{watch: seen.revision, base: e.base.revision, lookAt: now.Add(behindBackoff.Wait(1, 0))}
	case !now.Before(b.lookAt):
		b.looks++
		b.overdue, b.lookAt = true, now.Add(behindBackoff.Wait(b.looks+1, 0))
	}
	c.behinds[uid] = b
	return false, b.look
}

// lookOverdue marks a pod that is overdue to be read in its next turn. It reports whether the pod was overdue.
func (c *cache) lookOverdue(uid types.UID) bool {
	b := c.behinds[uid]
	if !b.overdue {
		return false
	}
	b.overdue, b.look = false, true
	c.behinds[uid] = b
	return true
}

// late returns the bases of the pods that the watch is behind with, and reports whether one of them is overdue to be
// read.
func (c *cache) late() (bases map[types.UID]revision, overdue bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bases = make(map[types.UID]revision)
	for uid, b := range c.behinds {
		if e := c.entries[uid]; e != nil && !b.lookAt.IsZero() && !b.look {
			bases[uid] = e.base.revision
			overdue = overdue || b.overdue
		}
	}
	return bases, overdue
}

// compare takes in a list of the node's pods, nil if there is none, that began when the pods that the watch is behind
// with had these bases. It returns the turns in which pods are to be read: a pod that the list has as in its base is
// not read.
func (c *cache) compare(bases map[types.UID]revision, listed map[types.UID]*v1.Pod, now time.Time) []turnRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	var turns []turnRequest
	for uid, revision := range bases {
		e, b := c.entries[uid], c.behinds[uid]
		if e == nil || e.base.revision != revision || b.look {
			continue // a request or the watch has brought another base meanwhile
		}
		pod := listed[c.target(uid)]
		switch {
		case pod != nil && revisionOf(pod) == revision && baseOf(pod).matches(c.owns, pod.UID, e.base.status):
			b.overdue, b.lookAt = false, instant.Later(b.lookAt, now.Add(behindBackoff.Wait(1, 0)))
			c.behinds[uid] = b
		case b.overdue:
			c.lookOverdue(uid)
			turns = append(turns, turnRequest{uid: uid, urgency: background, at: now, expedite: e.waitsFor().local()})
		}
	}
	return turns
}

// readOverdue returns the turns in which the overdue pods are read. If the watch is behind many pods, it returns none
// and has the pods listed.
func (m *Manager) readOverdue(now time.Time) []turnRequest {
	bases, overdue := m.cache.late()
	switch {
	case !overdue:
		return nil
	case len(bases) <= readAlone:
		return m.cache.compare(bases, nil, now)
	}
	select {
	case m.listDue <- struct{}{}:
	default: // it is going to be
	}
	return nil
}

// listOverdue lists the node's pods when the watch is behind many, until the context ends.
func (m *Manager) listOverdue(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.listDue:
		}
		bases, _ := m.cache.late()
		within, cancel := context.WithTimeout(ctx, listWithin)
		listed, err := m.list(within)
		cancel()
		if ctx.Err() != nil {
			return
		}
		byUID := make(map[types.UID]*v1.Pod, len(listed)) // empty if the list failed: then each pod is read
		for i := range listed {
			byUID[listed[i].UID] = &listed[i]
		}
		turns := m.cache.compare(bases, byUID, time.Now())
		m.opts.Logger.Debug("the watch is behind many pods, which were listed", "pods", len(bases), "to be read", len(turns), "err", err)
		m.metrics.reconciles.WithLabelValues("behind").Add(float64(len(turns)))
		for _, turn := range turns {
			m.engine.changed(turn)
		}
		if !backoff.Sleep(ctx, listEvery) {
			return
		}
	}
}

// list lists the node's pods.
func (m *Manager) list(ctx context.Context) ([]v1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, m.opts.RequestTimeout)
	defer cancel()
	listed, err := m.opts.Client.List(ctx)
	m.metrics.requests.WithLabelValues("list", reasonOf(err)).Inc()
	return listed, err
}

// heard begins the schedule of a pod again that the watch is behind with: the watch has brought the pod, so it does not
// hang, and an older copy may be what the server has by now.
func (c *cache) heard(uid types.UID, now time.Time) {
	if b, ok := c.behinds[uid]; ok && b.looks > 0 {
		b.looks = 0
		if first := now.Add(behindBackoff.Wait(1, 0)); first.Before(b.lookAt) {
			b.lookAt = first
		}
		c.behinds[uid] = b
	}
}

// rebase makes the response to a request of this turn the base, unless the watch has delivered a
// newer copy since the turn began. It reports whether the response shows that the server has lost
// changes known before the turn.
func (c *cache) rebase(e *entry, p *plan, answer base) (undone bool) {
	b, known := c.behinds[p.uid]
	watched := p.began.revision
	if p.watched != nil {
		watched = revisionOf(p.watched)
	}
	// A turn that was planned before the doubt arose has not read the pod for its sake.
	look := b.look && !(p.look && p.epoch == c.epoch)
	// Each of the two may be what the server has forgotten, and only what it has may be ignored later.
	stale := watched > answer.revision
	if answer.revision != 0 && (p.began.revision > answer.revision || stale && watched != b.undone) {
		b, known, look = behind{}, true, false // the answer is of the new history itself
		if stale {
			b.undone = watched
		}
		undone = !p.look && p.epoch == c.epoch // else all pods are being read already
	}
	if known {
		b.look = look
		c.behinds[p.uid] = b
	}
	if p.asked {
		c.reached(answer.revision, time.Now())
	}
	if e.base.same(p.began) {
		e.base = answer
		return undone
	}
	e.base = newer(e.base, answer)
	return undone
}

// reached records a version that the server had reached at this time.
func (c *cache) reached(r revision, at time.Time) {
	if r >= c.newest {
		c.newest, c.newestAt = r, at
	}
}

// readVersion records a version that the server had, although no pod of the node has it: a server that is taken back to a backup may have
// passed the newest version of these pods when it is asked again.
func (c *cache) readVersion(r revision, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reached(r, at)
}

// newestRevision returns the newest version seen, and when.
func (c *cache) newestRevision() (revision, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest, c.newestAt
}

// distrust marks all pods to be read but the one that has been, if any: the server was restored, and has reached
// this version. It returns the pods.
func (c *cache) distrust(reached revision, read types.UID) []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = reached
	c.epoch++
	var uids []types.UID
	for uid, e := range c.entries {
		if !e.base.known() || uid == read {
			continue
		}
		b := c.behinds[uid]
		b.look = true
		c.behinds[uid] = b
		uids = append(uids, uid)
	}
	return uids
}

// historyChanged schedules reads of all pods, as background work, but of the one whose answer has shown that.
func (m *Manager) historyChanged(reached revision, shownBy types.UID) {
	uids := m.cache.distrust(reached, shownBy)
	m.opts.Logger.Warn("the API server's resource versions have gone back, as after a restore from a backup; all pods are read", "version", uint64(reached), "pods", len(uids))
	m.metrics.reconciles.WithLabelValues("history").Add(float64(len(uids)))
	if m.opts.HistoryChanged != nil {
		m.opts.HistoryChanged()
	}
	now := time.Now()
	for _, uid := range uids {
		m.engine.changed(turnRequest{uid: uid, urgency: background, at: now, expedite: true})
	}
}

// followHistory requests the server's version while no other response shows it, until the context
// ends.
func (m *Manager) followHistory(ctx context.Context) {
	timer := time.NewTimer(m.opts.Versions.every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(time.Until(m.checkHistory(ctx)))
		}
	}
}

// checkHistory asks for the server's version if none was seen for as long as Options.Versions says. It
// returns when to check again.
func (m *Manager) checkHistory(ctx context.Context) (next time.Time) {
	every := m.opts.Versions.every
	before, at := m.cache.newestRevision()
	if before == 0 {
		return time.Now().Add(every)
	}
	if next = at.Add(every); next.After(time.Now()) {
		return next
	}
	ctx, cancel := context.WithTimeout(ctx, m.opts.RequestTimeout)
	defer cancel()
	read := m.opts.Versions.since(ctx, at)
	if read.asked {
		m.metrics.requests.WithLabelValues("list", reasonOf(read.err)).Inc()
	}
	switch {
	case read.err != nil || read.version == 0:
	case read.version < before:
		m.historyChanged(read.version, "")
	default:
		m.cache.readVersion(read.version, read.at)
	}
	return instant.Later(read.at.Add(every), time.Now().Add(time.Second))
}
