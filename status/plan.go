package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// plan is the input of one turn of a pod, read when the turn begins: the newest status then, not
// the newest status when the pod was queued.
type plan struct {
	*snapshot
	uid    types.UID
	pod    *v1.Pod // the spec, as far as known
	target types.UID
	// accepted is what the API server had when the turn began.
	accepted uint64
	// base is the copy to which a write is the difference, began the cache's base when the turn
	// began.
	base, began base
	watched     *v1.Pod // the watch's copy of the API's pod, if there is one
	// look: the base is in doubt, and the pod must be read. Asked: the base is a response to a
	// request of this turn.
	look, asked bool
	// epoch is the server's history at the beginning of the turn.
	epoch    int
	fight    fight
	decision decision
	// leftOut are the fields that the API server refuses and that are not tried before
	// tryRefusedAt.
	leftOut      []string
	tryRefusedAt time.Time
	// fresh: no try has failed since the last success, and the pod waits for nothing but its next report.
	fresh bool
	// refusedBefore: the last try was made without fields that the server refuses.
	refusedBefore bool
}

// newPlan prepares a turn, or returns why no turn is needed.
func (m *Manager) newPlan(uid types.UID, now time.Time) (*plan, waitReason, bool) {
	pod, known := m.opts.Pods.ByUID(uid)
	if !known {
		return m.cache.plan(uid, nil, nil, uid, now)
	}
	watched, target := pod, uid
	if podstatus.IsStatic(pod) {
		mirror, ok := m.opts.Pods.MirrorOf(pod)
		if !ok {
			return nil, waitNoMirror, m.cache.load(uid) != nil
		}
		watched, target = mirror, mirror.UID
	}
	return m.cache.plan(uid, pod, watched, target, now)
}
