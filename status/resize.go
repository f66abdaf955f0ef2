package status

import (
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// resizes holds the resize conditions of the pods. They are not part of the cached status
// by themselves: whoever generates a pod's status includes them (Z6).
type resizes struct {
	// mu guards pods. It is held while the journal is written, so that memory never says
	// what the disk does not.
	mu   sync.Mutex
	pods map[types.UID]podstatus.ResizeConditions
}

func newResizes(journal Journal) *resizes {
	r := &resizes{pods: make(map[types.UID]podstatus.ResizeConditions)}
	if journal != nil {
		maps.Copy(r.pods, journal.AllResizeConditions())
	}
	return r
}

func (r *resizes) remove(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, uid)
}

func (r *resizes) retain(keep func(types.UID) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.pods, func(uid types.UID, _ podstatus.ResizeConditions) bool { return !keep(uid) })
}

// changeResize replaces the resize conditions of a pod, in the journal first. A journal
// that cannot be written is reported, and the conditions change all the same: a resize
// must not hang on a disk.
func (m *Manager) changeResize(uid types.UID, change func(podstatus.ResizeConditions) podstatus.ResizeConditions) {
	m.resizes.mu.Lock()
	defer m.resizes.mu.Unlock()
	before := m.resizes.pods[uid]
	after := change(before)
	if after == before {
		return
	}
	if m.opts.Journal != nil {
		m.journaled("keep resize conditions", uid, m.opts.Journal.SetResizeConditions(uid, after))
	}
	if after.IsZero() {
		delete(m.resizes.pods, uid)
		return
	}
	m.resizes.pods[uid] = after
}

// SetPodResizePendingCondition says that a resize of the pod waits: Deferred, or
// Infeasible. It reports whether the reason or the generation is new.
func (m *Manager) SetPodResizePendingCondition(uid types.UID, reason, message string, observedGeneration int64) (changed bool) {
	m.changeResize(uid, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
		c, changed = c.SetPending(reason, message, observedGeneration, time.Now())
		return c
	})
	return changed
}

// SetPodResizeInProgressCondition says that a resize of the pod is being carried out. An
// existing condition keeps its generation; it returns the one that holds, and whether
// anything but times changed.
func (m *Manager) SetPodResizeInProgressCondition(uid types.UID, reason, message string, observedGeneration int64) (generation int64, changed bool) {
	m.changeResize(uid, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
		c, generation, changed = c.SetInProgress(reason, message, observedGeneration, time.Now())
		return c
	})
	return generation, changed
}

// ClearPodResizePendingCondition says that no resize of the pod waits any more.
func (m *Manager) ClearPodResizePendingCondition(uid types.UID) {
	m.changeResize(uid, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
		c, _ = c.ClearPending()
		return c
	})
}

// ClearPodResizeInProgressCondition says that the resize is done. It returns the
// generation that was being worked on, and whether there was one.
func (m *Manager) ClearPodResizeInProgressCondition(uid types.UID) (generation int64, cleared bool) {
	m.changeResize(uid, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
		c, generation, cleared = c.ClearInProgress()
		return c
	})
	return generation, cleared
}

// GetPodResizeConditions returns the resize conditions of a pod, the pending one first, to
// be included in its status.
func (m *Manager) GetPodResizeConditions(uid types.UID) []v1.PodCondition {
	m.resizes.mu.Lock()
	defer m.resizes.mu.Unlock()
	return m.resizes.pods[uid].List()
}

// BackfillPodResizeConditions takes over the resize conditions that pods of the API carry,
// for pods about which nothing is known here. Call it once at start.
func (m *Manager) BackfillPodResizeConditions(pods []*v1.Pod) {
	for _, pod := range pods {
		found := podstatus.ResizeConditionsOf(pod.Status.Conditions)
		m.changeResize(pod.UID, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
			if c.IsZero() {
				return found
			}
			return c
		})
	}
}
