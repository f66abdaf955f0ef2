package status

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// resizes holds the resize conditions of the pods. They are not part of the cached status
// by themselves: the reporter that generates a pod's status includes them (Z6).
type resizes struct {
	// writing, one for a share of the pods each, keep the changes of a pod in order, in memory
	// and on disk. They are held while the journal is written, so that memory never says what
	// the disk does not; readers do not need them.
	writing [16]sync.Mutex
	// mu guards the maps. It is never held while the journal is written.
	mu   sync.Mutex
	pods map[types.UID]podstatus.ResizeConditions
	// unkept are the pods whose conditions the journal did not take. The next change of such
	// a pod is written whatever it is.
	unkept map[types.UID]bool
}

var resizesSeed = maphash.MakeSeed()

func newResizes(journal Journal) *resizes {
	r := &resizes{pods: make(map[types.UID]podstatus.ResizeConditions), unkept: make(map[types.UID]bool)}
	if journal != nil {
		maps.Copy(r.pods, journal.AllResizeConditions())
	}
	return r
}

// lock keeps others from changing the conditions of the pod until the returned mutex is unlocked.
func (r *resizes) lock(uid types.UID) *sync.Mutex {
	lock := &r.writing[maphash.String(resizesSeed, string(uid))%uint64(len(r.writing))]
	lock.Lock()
	return lock
}

func (r *resizes) get(uid types.UID) (conditions podstatus.ResizeConditions, kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[uid], !r.unkept[uid]
}

func (r *resizes) put(uid types.UID, conditions podstatus.ResizeConditions, kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unkept, uid)
	if !kept {
		r.unkept[uid] = true
	}
	if conditions.IsZero() {
		delete(r.pods, uid)
		return
	}
	r.pods[uid] = conditions
}

func (r *resizes) remove(uid types.UID) {
	defer r.lock(uid).Unlock()
	r.put(uid, podstatus.ResizeConditions{}, true)
}

func (r *resizes) retain(keep func(types.UID) bool) {
	r.mu.Lock()
	known := slices.AppendSeq(slices.Collect(maps.Keys(r.pods)), maps.Keys(r.unkept))
	r.mu.Unlock()
	for _, uid := range known {
		if !keep(uid) {
			r.remove(uid)
		}
	}
}

// count counts the pods whose conditions are as asked for.
func (r *resizes) count(is func(podstatus.ResizeConditions) bool) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, conditions := range r.pods {
		if is(conditions) {
			n++
		}
	}
	return float64(n)
}

// gauges are the kubelet's metrics of resizes, counted when they are asked for, so that
// they cannot differ from the conditions.
func (r *resizes) gauges() []*sharedGauge {
	gauge := func(name, help, reason string, is func(podstatus.ResizeConditions) bool) *sharedGauge {
		var labels prometheus.Labels
		if reason != "" {
			labels = prometheus.Labels{"reason": strings.ToLower(reason)}
		}
		return newSharedGauge(name, help, labels, func() float64 { return r.count(is) })
	}
	pending := func(reason string) *sharedGauge {
		return gauge("pod_pending_resizes", "Pods with a resize that waits, by reason.", reason, func(c podstatus.ResizeConditions) bool {
			return c.Pending != nil && c.Pending.Reason == reason
		})
	}
	return []*sharedGauge{
		pending(v1.PodReasonDeferred),
		pending(v1.PodReasonInfeasible),
		gauge("pod_in_progress_resizes", "Pods with a resize that is being carried out.", "", func(c podstatus.ResizeConditions) bool {
			return c.InProgress != nil
		}),
	}
}

// changeResize replaces the resize conditions of a pod, in the journal first. A journal
// that cannot be written is reported, and the conditions change all the same: a resize
// must not depend on a disk.
func (m *Manager) changeResize(uid types.UID, change func(podstatus.ResizeConditions) podstatus.ResizeConditions) {
	defer m.resizes.lock(uid).Unlock()
	before, kept := m.resizes.get(uid)
	after := change(before)
	if !m.knows(uid) {
		return
	}
	if m.opts.Journal != nil && (!kept || !after.SameButProbed(before)) {
		kept = m.journaled("keep resize conditions", uid, m.opts.Journal.SetResizeConditions(uid, after)) == nil
	}
	m.resizes.put(uid, after, kept)
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
	conditions, _ := m.resizes.get(uid)
	return conditions.List()
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
