package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/podstatus"
)

// delivery is the state of the delivery of a pod's status. It is part of an entry and guarded by
// the lock of the cache.
type delivery struct {
	// accepted is the newest version that the API server has accepted for the pod's target, or the
	// version before the first.
	accepted uint64
	// base is the newest copy of the API's pod from writes. The watch may have a newer copy.
	base base
	// backlog is the outstanding work, nil for the many pods without any.
	backlog *backlog
}

// backlog is an unfinished delivery.
type backlog struct {
	// since is when the first change after the accepted version was made, unbuiltSince
	// when the first one after the newest request was built.
	since        time.Time // zero: all changes are accepted
	unbuiltSince time.Time
	reason       waitReason
	attempts     int
	lastErr      error
	nextTry      time.Time
	// flushed: Flush waits for the pod, so that details are sent at once.
	flushed bool
	// refusal has the fields of the pod that the API server refuses, if any.
	refusal refusal
}

// ensureBacklog returns the backlog, to be changed.
func (e *entry) ensureBacklog() *backlog {
	if e.backlog == nil {
		e.backlog = &backlog{}
	}
	return e.backlog
}

// waitsFor returns why the pod waits, if it does.
func (e *entry) waitsFor() waitReason {
	if e.backlog == nil {
		return waitNone
	}
	return e.backlog.reason
}

// pending reports whether there is a change that the API server has not accepted.
func (e *entry) pending() bool { return e.version > e.accepted }

// target is the API object of a pod: the pod itself, or the mirror pod of a static pod.
func (c *cache) target(uid types.UID) types.UID {
	if mirror, ok := c.mirrors[uid]; ok {
		return mirror
	}
	return uid
}

// retarget sets the UID of the API object for this pod, its own or its mirror's. If it changed,
// delivery starts over (M0c). It reports whether it changed.
func (c *cache) retarget(uid types.UID, e *entry, target types.UID, now time.Time) bool {
	if c.target(uid) == target {
		return false
	}
	if !e.pending() {
		e.ensureBacklog().since = now
	}
	c.mirrors[uid] = target
	e.accepted, e.base = min(e.accepted, e.version-1), base{}
	delete(c.behinds, uid)
	delete(c.decisions, uid)
	delete(c.unanswered, uid)
	c.release(uid, e, now)
	return true
}

// release ends a wait for the pod to appear in the API. It reports whether there was one.
func (c *cache) release(uid types.UID, e *entry, now time.Time) bool {
	waited := !e.waitsFor().deliverable()
	if waited {
		e.backlog.reason, e.backlog.attempts = waitNone, 0
	}
	if e.pending() {
		c.markUnsent(uid, e, now)
	}
	return waited
}

// waitReason is why undelivered changes of a pod are not being written.
type waitReason uint8

const (
	waitNone waitReason = iota
	waitGone
	waitNoMirror
	waitDetails
	waitEnding
	waitWithheld
	waitUnreclaimed
	waitFight
	waitRefused
	waitOverruled
	waitUnanswered
)

// deliverable reports whether a pod that waits for this reason still has to be delivered: the API
// server cannot store the status of a pod that it does not have.
func (h waitReason) deliverable() bool { return h != waitGone && h != waitNoMirror }

// local reports whether the pod waits for something on this node: any report then ends the wait.
func (h waitReason) local() bool {
	return h == waitDetails || h == waitEnding || h == waitWithheld || h == waitUnreclaimed || h == waitFight || h == waitRefused || h == waitOverruled || h == waitUnanswered
}

func (h waitReason) String() string {
	switch h {
	case waitGone:
		return "the API server does not have this pod"
	case waitNoMirror:
		return "the static pod has no mirror pod yet"
	case waitDetails:
		return "only details have changed, which are sent with the next change"
	case waitEnding, waitWithheld:
		return "the pod has ended, but containers may still be running"
	case waitUnreclaimed:
		return "the resources of the finished pod are not reclaimed yet"
	case waitFight:
		return "another writer keeps changing the status back"
	case waitRefused:
		return "the API server refuses fields of the status and has the rest"
	case waitOverruled:
		return "the API server stores something else than was sent"
	case waitUnanswered:
		return "the API server has not answered an earlier request, and may still carry it out"
	default:
		return ""
	}
}

// acceptance is the result of an accepted version.
type acceptance struct {
	// since is the time of the first change that the server did not have, and changes is
	// how many changes went into the one request.
	since   time.Time
	changes uint64
	// drifted: the watch has shown during the turn that another writer has changed the pod.
	drifted bool
	// undone: the server has lost newer changes, see rebase.
	undone bool
}

// accept records that the API server has accepted the version of a turn. If the turn continues with
// the deletion of the pod, its attempts keep counting.
func (c *cache) accept(p *plan, answer base, more bool) (a acceptance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[p.uid]
	if !ok || c.target(p.uid) != p.target {
		return a
	}
	a.undone = c.rebase(e, p, answer)
	done := e.ensureBacklog()
	if p.version > e.accepted {
		a.since, a.changes = done.since, p.version-e.accepted
		e.accepted = p.version
	}
	if a.changes > 0 || done.attempts > 0 {
		now := time.Now()
		e.acceptedAt = now.UnixNano()
		c.observer.Accepted(p.uid, p.version, now)
	}
	a.drifted = e.base.revision > answer.revision && c.needs(p.uid, e, e.base, p.pod)
	left := backlog{since: done.unbuiltSince, unbuiltSince: done.unbuiltSince}
	if more {
		left.reason, left.attempts, left.lastErr, left.nextTry, left.refusal = done.reason, done.attempts, done.lastErr, done.nextTry, done.refusal
	}
	switch {
	case e.pending():
		e.backlog = &left
		c.unsent[p.uid] = e
		c.progressed()
	case more:
		e.backlog = &left
		c.clearUnsent(p.uid)
	default:
		e.backlog = nil
		c.clearUnsent(p.uid)
	}
	return a
}

// leave records that no work is left for a pod that the API server deletes by itself.
func (c *cache) leave(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[uid]; ok && !e.pending() {
		e.backlog, e.base.ended = nil, false
	}
}

// settle records that this copy of the API's pod needs no write.
func (c *cache) settle(uid types.UID, version uint64, at base) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[uid]; ok && e.version == version && e.base.revision == at.revision {
		e.base.settled = true
	}
}

// failed records a failed attempt and returns how long to wait for the next attempt.
func (c *cache) failed(uid types.UID, err error, why waitReason, schedule backoff.Schedule, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok {
		return 0
	}
	o := e.ensureBacklog()
	if o.reason != why {
		o.attempts = 0 // a new obstacle starts its own schedule
	}
	o.attempts++
	wait := schedule.Wait(o.attempts, c.jitter())
	o.lastErr, o.reason, o.nextTry = err, why, now.Add(wait)
	if why == waitWithheld || why == waitOverruled {
		c.progressed() // Flush waits for the try, and not for its success
	}
	c.observer.Failed(podstatus.Undelivered{UID: uid, Version: e.version, At: now, Tries: o.attempts, Err: err, Reason: reasonOf(err), Waits: why.String()})
	if e.pending() && why.deliverable() {
		c.unsent[uid] = e
	} else if !why.deliverable() {
		c.clearUnsent(uid)
	}
	return wait
}

// attempts returns how many requests for a pod have failed in a row. Rechecks of a pod that waits for something else
// do not count.
func (c *cache) attempts(uid types.UID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[uid]; ok && e.backlog != nil && e.backlog.reason == waitNone {
		return e.backlog.attempts
	}
	return 0
}

// waitUntil records why a pod is not written before a certain time.
func (c *cache) waitUntil(uid types.UID, why waitReason, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[uid]; ok {
		e.ensureBacklog().reason, e.ensureBacklog().nextTry = why, at
	}
}

// setNextTry records that a pod is tried at another time.
func (c *cache) setNextTry(uid types.UID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[uid]; ok && e.backlog != nil {
		e.backlog.nextTry = at
	}
}

// keepBase records the API's pod after a write of a part of the status.
func (c *cache) keepBase(p *plan, answer base) (undone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[p.uid]; ok && c.target(p.uid) == p.target {
		undone = c.rebase(e, p, answer)
	}
	return undone
}

// dropBase forgets a base that the API server has contradicted.
func (c *cache) dropBase(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[uid]; ok {
		e.base = base{}
	}
}

// plan returns the plan of a turn, or why there is no turn. The pod is nil if the table does not
// have it, watched is the watch's copy of the target.
func (c *cache) plan(uid types.UID, pod, watched *v1.Pod, target types.UID, now time.Time) (*plan, waitReason, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok {
		return nil, waitNone, false
	}
	if pod == nil && e.static {
		return nil, waitNoMirror, true
	}
	c.retarget(uid, e, target, now)
	if e.backlog != nil {
		e.backlog.unbuiltSince = time.Time{}
	}
	p := &plan{
		snapshot: e.snapshot,
		uid:      uid,
		pod:      pod,
		target:   target,
		accepted: e.accepted,
		base:     e.base,
		began:    e.base,
		look:     c.behinds[uid].look || e.waitsFor() == waitGone || c.isLate(uid, now),
		epoch:    c.epoch,
		watched:  watched,
		fight:    c.fights[uid],
		decision: c.decisions[uid],
	}
	p.fresh = e.backlog == nil || e.backlog.attempts == 0 && (e.backlog.reason == waitNone || e.backlog.reason == waitDetails)
	p.refusedBefore = e.waitsFor() == waitRefused
	if p.refusedBefore && now.Before(e.backlog.nextTry) {
		p.leftOut, p.tryRefusedAt = e.backlog.refusal.standing(&e.status), e.backlog.nextTry
	}
	if pod == nil {
		p.pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name, UID: uid, Generation: e.status.ObservedGeneration}}
	} else if seen := baseOf(watched); watched.ResourceVersion != "" && seen.revision != c.behinds[uid].undone {
		p.base = newer(seen, p.base)
	}
	return p, waitNone, true
}

func (c *cache) setFight(uid types.UID, f fight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[uid]; !ok {
		return
	}
	c.fights[uid] = f
	if f.rounds >= fightRounds {
		c.observer.Failed(podstatus.Undelivered{UID: uid, Version: f.version, At: f.last, Tries: f.rounds, Writer: f.writer, Rounds: f.rounds})
	}
}

func (c *cache) endFight(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.fights, uid)
}

// setRefusal records what the server refuses of a pod.
func (c *cache) setRefusal(uid types.UID, r refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[uid]; ok {
		e.ensureBacklog().refusal = r
	}
}
