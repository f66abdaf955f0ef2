package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// observe compares the API's copy of a pod with what this node says, and asks for a turn if
// they differ.
func (m *Manager) observe(pod *v1.Pod) {
	uid := m.opts.Pods.TranslateUID(pod.UID)
	now := time.Now()
	if u, ok := m.cache.observe(uid, pod, m.specOf(uid, pod), now); ok {
		m.metrics.reconciles.WithLabelValues("observed").Inc()
		m.engine.changed(note{uid: uid, urgency: u, at: now, expedite: true})
	}
}

// specOf is the pod that this node runs behind the API's pod.
func (m *Manager) specOf(uid types.UID, pod *v1.Pod) *v1.Pod {
	if uid == pod.UID {
		return pod
	}
	static, ok := m.opts.Pods.ByUID(uid)
	if !ok {
		return pod
	}
	return static
}

// observe notes a copy of the API's pod and tells whether there is something to do about it,
// and how urgent that is: resources wait for a deletion.
func (c *cache) observe(uid types.UID, pod, spec *v1.Pod, now time.Time) (urgency, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[uid]
	if !ok || c.standalone || (e.static && !podstatus.IsMirror(pod)) {
		return background, false
	}
	c.reached(revisionOf(pod), now)
	another := c.retarget(uid, e, pod.UID, now)
	waited := c.release(uid, e, now) || another
	news, look := c.takeIn(uid, e, baseOf(pod), now)
	switch {
	case news && e.finished && e.base.ended:
		return withdrawal, true
	case waited, look:
		return background, true
	default:
		return background, news && c.needs(uid, e, e.base, spec)
	}
}

// needs tells whether the API's pod calls for a turn: a difference, or a deletion that is
// due. What is unsent has its turn coming anyway.
func (c *cache) needs(uid types.UID, e *entry, api base, spec *v1.Pod) bool {
	return e.finished && api.ended ||
		!e.pending() && c.owns.NeedsReconcile(spec, api.status, &e.status) && !c.decided(uid, e, api, spec)
}

// fullPass compares every cached pod with the API's and returns those that need a turn. It
// is the safety net under ObservePod and the only scan of all pods.
func (m *Manager) fullPass() []note {
	var notes []note
	now := time.Now()
	for _, uid := range m.cache.unknown(func(types.UID) bool { return false }) {
		if m.due(uid, now) {
			notes = append(notes, note{uid: uid, urgency: background, at: now})
		}
	}
	if len(notes) > 0 {
		m.metrics.reconciles.WithLabelValues("pass").Add(float64(len(notes)))
	}
	return notes
}

// due tells whether the full pass has found something to do for a pod.
func (m *Manager) due(uid types.UID, now time.Time) bool {
	pod, known := m.opts.Pods.ByUID(uid)
	api := pod
	if known && podstatus.IsStatic(pod) {
		api, known = m.opts.Pods.MirrorOf(pod)
	}
	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	e, ok := m.cache.entries[uid]
	if !ok {
		return false
	}
	if !known { // R1: nothing to compare with
		return false
	}
	m.cache.retarget(uid, e, api.UID, now)
	if e.pending() {
		return e.held().counts()
	}
	if e.base.settled && e.base.revision == revisionOf(api) {
		return false
	}
	look := false
	if api.ResourceVersion != "" || !e.base.known() {
		_, look = m.cache.takeIn(uid, e, baseOf(api), now)
	}
	return look || m.cache.needs(uid, e, e.base, pod)
}
