package status

import (
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

// Resizes stores the state of in-place resizes besides the status of pods: the allocation of each
// pod, and its resize conditions. The conditions are not part of the cached status: the reporter
// that generates a pod's status includes them (Z6). The methods have the names of the kubelet's
// status manager; the four methods that are used without resizes are methods of the [Manager].
type Resizes struct {
	m *Manager
	// mu guards the maps. It is never held while the journal is written: a change is written first, and
	// then made if no other was made meanwhile.
	mu   sync.Mutex
	pods map[types.UID]*podstatus.ResizeConditions // never changed, only replaced
	// unkept are the pods whose conditions the journal did not take. The next change of such
	// a pod is written whatever it is.
	unkept map[types.UID]bool
}

func newResizes(m *Manager) *Resizes {
	r := &Resizes{m: m, pods: make(map[types.UID]*podstatus.ResizeConditions), unkept: make(map[types.UID]bool)}
	if m.opts.Journal != nil {
		for uid, conditions := range m.opts.Journal.AllResizeConditions() {
			r.pods[uid] = &conditions
		}
	}
	return r
}

func (r *Resizes) get(uid types.UID) podstatus.ResizeConditions {
	if conditions, _ := r.load(uid); conditions != nil {
		return *conditions
	}
	return podstatus.ResizeConditions{}
}

func (r *Resizes) load(uid types.UID) (conditions *podstatus.ResizeConditions, kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[uid], !r.unkept[uid]
}

// swap replaces the conditions of a pod if they have not changed since next was computed from them.
func (r *Resizes) swap(uid types.UID, from, next *podstatus.ResizeConditions, kept bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods[uid] != from {
		return false
	}
	delete(r.unkept, uid)
	if !kept {
		r.unkept[uid] = true
	}
	if next.IsZero() {
		delete(r.pods, uid)
	} else {
		r.pods[uid] = next
	}
	return true
}

func (r *Resizes) remove(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, uid)
	delete(r.unkept, uid)
}

func (r *Resizes) retain(keep func(types.UID) bool) {
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
func (r *Resizes) count(is func(podstatus.ResizeConditions) bool) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, conditions := range r.pods {
		if is(*conditions) {
			n++
		}
	}
	return float64(n)
}

// gauges are the kubelet's metrics of resizes, counted when they are asked for, so that
// they cannot differ from the conditions.
func (r *Resizes) gauges() []*sharedGauge {
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

// change replaces the resize conditions of a pod, in the journal first. A journal
// that cannot be written is reported, and the conditions change all the same: a resize
// must not depend on a disk.
func (r *Resizes) change(uid types.UID, change func(podstatus.ResizeConditions) podstatus.ResizeConditions) {
	if !r.m.knows(uid) {
		return
	}
	for wrote := false; ; {
		before, kept := r.load(uid)
		from := podstatus.ResizeConditions{}
		if before != nil {
			from = *before
		}
		after := change(from)
		if r.m.opts.Journal != nil && (wrote || !kept || !after.SameButProbed(from)) {
			wrote, kept = true, r.keep(uid, after) == nil
		}
		if r.swap(uid, before, &after, kept) {
			break
		}
	}
	if !r.m.knows(uid) { // it was forgotten meanwhile
		r.remove(uid)
	}
}

// keep writes the conditions of a pod to the journal.
func (r *Resizes) keep(uid types.UID, conditions podstatus.ResizeConditions) error {
	const what = "keep resize conditions"
	x := r.m.writes.add(uid, writeOther, func() error {
		return r.m.journaled(what, uid, r.m.opts.Journal.SetResizeConditions(uid, conditions))
	})
	return r.m.unlessHung(what, uid, r.m.writes.wait(x))
}

// Resizes returns the manager's state of resizes.
func (m *Manager) Resizes() *Resizes { return m.resizes }

// GetPodAllocation returns the allocation stored with [Manager.SetPodAllocation].
func (r *Resizes) GetPodAllocation(uid types.UID) (podstatus.Allocation, bool) {
	if r.m.opts.Journal == nil {
		return podstatus.Allocation{}, false
	}
	return r.m.opts.Journal.GetPodAllocation(r.m.opts.Pods.TranslateUID(uid))
}

// SetPodResizePendingCondition records that a resize of the pod is pending: Deferred, or Infeasible. It
// reports whether the reason or the generation changed. For an unknown pod nothing is stored, as with
// the other methods.
func (r *Resizes) SetPodResizePendingCondition(uid types.UID, reason, message string, observedGeneration int64) (changed bool) {
	r.change(uid, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
		c, changed = c.SetPending(reason, message, observedGeneration, time.Now())
		return c
	})
	return changed
}

// SetPodResizeInProgressCondition records that a resize of the pod is in progress. An existing
// condition keeps its generation. It returns the generation of the condition, and whether anything
// but times changed.
func (r *Resizes) SetPodResizeInProgressCondition(uid types.UID, reason, message string, observedGeneration int64) (generation int64, changed bool) {
	r.change(uid, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
		c, generation, changed = c.SetInProgress(reason, message, observedGeneration, time.Now())
		return c
	})
	return generation, changed
}

// ClearPodResizePendingCondition records that no resize of the pod is pending.
func (r *Resizes) ClearPodResizePendingCondition(uid types.UID) {
	r.change(uid, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
		c, _ = c.ClearPending()
		return c
	})
}

// ClearPodResizeInProgressCondition records that no resize is in progress. It returns the
// generation of the resize that was in progress, and whether there was one.
func (r *Resizes) ClearPodResizeInProgressCondition(uid types.UID) (generation int64, cleared bool) {
	r.change(uid, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
		c, generation, cleared = c.ClearInProgress()
		return c
	})
	return generation, cleared
}

// GetPodResizeConditions returns the resize conditions of a pod, the pending one first, to
// be included in its status.
func (r *Resizes) GetPodResizeConditions(uid types.UID) []v1.PodCondition {
	return r.get(uid).List()
}

// BackfillPodResizeConditions copies the resize conditions of pods in the API, for pods without
// stored conditions. Call it once at start.
func (r *Resizes) BackfillPodResizeConditions(pods []*v1.Pod) {
	for _, pod := range pods {
		found := podstatus.ResizeConditionsOf(pod.Status.Conditions)
		r.change(pod.UID, func(c podstatus.ResizeConditions) podstatus.ResizeConditions {
			if c.IsZero() {
				return found
			}
			return c
		})
	}
}
