package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// observe records a copy of the API's pod. It reports whether the pod needs a turn, and how urgent
// it is: resources wait for a deletion.
func (c *cache) observe(uid types.UID, pod, spec *v1.Pod, now time.Time) (urgency, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reached(revisionOf(pod), now) // also if no status of the pod was reported yet
	e, ok := c.entries[uid]
	if !ok || c.standalone || (e.static && !podstatus.IsMirror(pod)) {
		return background, false
	}
	another := c.retarget(uid, e, pod.UID, now)
	waited := c.release(uid, e, now) || another
	c.heard(uid, now)
	grave := e.gravelyWrong()
	news, look := c.takeIn(uid, e, baseOf(pod), now)
	look = c.lookOverdue(uid) || look
	if b := c.behinds[uid]; b.undone != 0 && b.undone == revisionOf(pod) {
		// A version of the history that the server has lost; or it has given the version out again.
		b.look, look = true, true
		c.behinds[uid] = b
	}
	switch {
	case news && e.finished && e.base.ended:
		return withdrawal, true
	case waited && e.base.known():
		return reconcileUrgency(e.base.status, &e.status), true
	case waited, look:
		return background, true
	case news && c.needs(uid, e, e.base, spec):
		c.noteForeignWrite(uid, e, now)
		return reconcileUrgency(e.base.status, &e.status), true
	case news && e.pending() && !grave && e.gravelyWrong(): // its next try may be far off
		return reconcileUrgency(e.base.status, &e.status), true
	default:
		return background, news && c.reconsider(uid, e, spec, now)
	}
}

// gravelyWrong reports whether the API's pod, as far as known, has another readiness or phase.
func (e *entry) gravelyWrong() bool {
	return e.base.known() && graveDifference(e.base.status, &e.status)
}

// reconsider reports whether an observation ends the wait for a decision of the server, or for
// another writer: the API's pod is correct now; or another writer's change was stored, and traffic or
// controllers depend on the overruled fields.
func (c *cache) reconsider(uid types.UID, e *entry, spec *v1.Pod, now time.Time) bool {
	if waits := e.waitsFor(); waits != waitOverruled && waits != waitFight {
		return false
	}
	d := c.decisions[uid]
	return !c.owns.NeedsReconcile(spec, e.base.status, &e.status) || d.grave && d.version == e.version && c.question(uid, d, now)
}

// needs reports whether the API's pod needs a turn: a difference, or a deletion that is due. Unsent
// changes have a turn scheduled anyway; but the turn of a withheld phase, or of overruled fields, may
// be far off, and changes of other writers do not wait for it.
func (c *cache) needs(uid types.UID, e *entry, api base, spec *v1.Pod) bool {
	if api.settled && !e.pending() {
		return e.finished && api.ended
	}
	waits := e.waitsFor()
	return e.finished && api.ended ||
		(!e.pending() || waits == waitWithheld || waits == waitOverruled || waits == waitUnanswered) && c.owns.NeedsReconcile(spec, api.status, &e.status) && !c.decided(uid, e, api, spec)
}

// decided reports whether the server has decided to answer the newest version with what this
// copy of the API's pod shows.
func (c *cache) decided(uid types.UID, e *entry, api base, spec *v1.Pod) bool {
	d, ok := c.decisions[uid]
	return ok && d.version == e.version && !c.owns.NeedsReconcile(spec, api.status, d.status)
}

// due reports whether the full pass has found something to do for a pod, whose newest copy in the
// API is known, and how urgent that is. A pod that is to be read does not wait for another writer, or for what the server
// has decided: what is known of both may be of a history that the server has lost.
func (c *cache) due(uid types.UID, pod, api *v1.Pod, now time.Time) (u urgency, due, expedite bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok {
		return background, false, false
	}
	c.retarget(uid, e, api.UID, now)
	if e.pending() {
		return background, e.waitsFor().deliverable(), false
	}
	if e.base.settled && e.base.revision == revisionOf(api) {
		return background, false, false
	}
	news, look := false, false
	if api.ResourceVersion != "" || !e.base.known() {
		news, look = c.takeIn(uid, e, baseOf(api), now)
	}
	if !c.needs(uid, e, e.base, pod) {
		return background, look, look && e.waitsFor().local()
	}
	c.lookOverdue(uid) // in the turn that is due anyway
	if news {
		c.noteForeignWrite(uid, e, now)
	}
	return reconcileUrgency(e.base.status, &e.status), true, false
}
