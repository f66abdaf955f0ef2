package status

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/instant"
)

// Resource versions order the copies of a pod for as long as the server's history is one. A
// server that is restored from a backup gives out versions again that it has given before,
// and a base from before the restore would then be "newer" than the truth for good. Two
// rules heal that:
//
//   - The answer to an own request is the newest truth, whatever its version, see
//     [cache.rebase]. Only copies of the watch are compared by version.
//   - If the watch's copy stays older than the base, either the watch hangs or history has
//     changed. The manager then reads the pod.
//
// A watch that goes on where it was before the restore is silent until the server has reached
// that version again, so the watch alone is not enough: if the server's answer to a request
// is older than what was known before the request, history has changed for all pods, and all
// are read. While nothing else shows that the server's version grows, it is asked for.

// behindBackoff is how long the watch's copy of a pod may be older than the base before the
// pod is read, and how long until it is read again if that changed nothing: a watch lags by
// milliseconds, and one that hangs for longer costs few reads.
var behindBackoff = backoff.Schedule{First: 15 * time.Second, Limit: 10 * time.Minute}

// behind is a pod whose base is newer than the watch's copy.
type behind struct {
	watch, base revision
	// lookAt is when the pod is to be read, looks how often it was. Look: it is to be
	// read in its next turn.
	lookAt time.Time
	looks  int
	look   bool
	// undone is the revision of a watch's copy that the server has been proven to have
	// forgotten: its answer to a later request has an older one.
	undone revision
}

// takeIn compares a copy that the watch has brought with the base and makes it the base if it
// is newer. It reports whether it was, and whether the pod should be read instead.
func (c *cache) takeIn(uid types.UID, e *entry, seen base, now time.Time) (news, look bool) {
	b := c.behinds[uid]
	switch {
	case b.undone != 0 && b.undone == seen.revision:
		return false, false
	case seen.supersedes(e.base):
		e.base = seen
		delete(c.behinds, uid)
		return true, false
	case seen.revision == e.base.revision && seen.revision != 0 && !seen.matches(c.owns, c.target(uid), e.base.status):
		// The server has given a version out again, and to something else.
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
		b.look, b.lookAt = true, now.Add(behindBackoff.Wait(b.looks+1, 0))
	}
	c.behinds[uid] = b
	return false, b.look
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

// rebase makes the answer to a request of this turn the base, unless the watch has brought a
// newer copy since the turn began. It reports whether the answer shows that the server has
// forgotten what was known before the turn.
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
		b, known = behind{}, true
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

// reached records a version that the server's history has reached.
func (c *cache) reached(r revision, now time.Time) {
	if r >= c.newest {
		c.newest, c.newestAt = r, now
	}
}

// newestRevision returns the newest version that was seen of any pod, and when.
func (c *cache) newestRevision() (revision, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest, c.newestAt
}

// distrust has all pods read: the server's history is another one, and has reached this
// version. It returns the pods.
func (c *cache) distrust(reached revision) []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = reached
	c.epoch++
	var uids []types.UID
	for uid, e := range c.entries {
		if !e.base.known() {
			continue
		}
		b := c.behinds[uid]
		b.look = true
		c.behinds[uid] = b
		uids = append(uids, uid)
	}
	return uids
}

// historyChanged has all pods read, as background work.
func (m *Manager) historyChanged(reached revision) {
	uids := m.cache.distrust(reached)
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

// followHistory asks for the server's version while nothing else shows it, until the context
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
	if read.err == nil && read.version != 0 && read.version < before {
		m.historyChanged(read.version)
	}
	return instant.Later(read.at.Add(every), time.Now().Add(time.Second))
}
