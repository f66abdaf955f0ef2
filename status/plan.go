package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// plan is everything that one turn of a pod works with, taken when the turn begins: the
// newest status, not the one that was newest when the pod was queued.
type plan struct {
	*snapshot
	uid    types.UID
	pod    *v1.Pod // the spec, as far as known
	target types.UID
	// accepted is what the API server had when the turn began.
	accepted uint64
	// base is the copy that a write is a difference to, began the one that the cache had when
	// the turn began.
	base, began base
	watched     *v1.Pod // the watch's copy of the API's pod, if there is one
	// look says that the base is in doubt and the pod is to be read.
	look bool
	// epoch is the server's history at the beginning of the turn.
	epoch    int
	fight    fight
	decision decision
	// leftOut are the fields that the API server refuses and that are not tried before
	// tryRefusedAt.
	leftOut      []string
	tryRefusedAt time.Time
}

// newPlan prepares a turn, or says why there is none to take.
func (m *Manager) newPlan(uid types.UID, now time.Time) (*plan, hold, bool) {
	pod, known := m.opts.Pods.ByUID(uid)
	var watched *v1.Pod
	target := uid
	if known {
		watched = pod
		if podstatus.IsStatic(pod) {
			mirror, ok := m.opts.Pods.MirrorOf(pod)
			if !ok {
				return nil, holdNoMirror, m.cache.holds(uid)
			}
			watched, target = mirror, mirror.UID
		}
	}

	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	e, ok := m.cache.entries[uid]
	if !ok {
		return nil, holdNone, false
	}
	if !known && e.static {
		return nil, holdNoMirror, true
	}
	m.cache.retarget(uid, e, target, now)
	if e.owed != nil {
		e.owed.unbuiltSince = time.Time{}
	}
	p := &plan{
		snapshot: e.snapshot,
		uid:      uid,
		pod:      pod,
		target:   target,
		accepted: e.accepted,
		base:     e.base,
		began:    e.base,
		look:     m.cache.behinds[uid].look || e.held() == holdGone,
		epoch:    m.cache.epoch,
		watched:  watched,
		fight:    m.cache.fights[uid],
		decision: m.cache.decisions[uid],
	}
	if e.held() == holdRefused && now.Before(e.owed.nextTry) {
		p.leftOut, p.tryRefusedAt = e.owed.refusal.standing(&e.status), e.owed.nextTry
	}
	if !known {
		p.pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name, UID: uid, Generation: e.status.ObservedGeneration}}
	} else if seen := baseOf(watched); watched.ResourceVersion != "" && seen.revision != m.cache.behinds[uid].undone {
		p.base = newer(seen, p.base)
	}
	return p, holdNone, true
}

// holds tells whether the cache has the pod.
func (c *cache) holds(uid types.UID) bool { return c.load(uid) != nil }
