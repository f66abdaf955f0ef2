package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/podstatus"
)

// ObservePod takes an added or updated pod from a watch of the node's pods, including mirror pods.
// If the status differs from this node's, the manager corrects it at once. ObservePod must be
// called in the order of the watch.
//
// A manager with its own table keeps the pod in the table until [Manager.ObserveDelete]; pass
// static pods, which no watch delivers, to ObservePod too. With Options.Pods the caller puts the
// pod into its table first.
//
// The pod is not copied and is kept as the base of writes: as with any object of a watch, the
// caller must not modify it.
func (m *Manager) ObservePod(pod *v1.Pod) {
	if pod.UID == "" {
		m.opts.Logger.Error("observed pod ignored", "pod", pod.Namespace+"/"+pod.Name, "err", ErrNoUID)
		return
	}
	m.track(pod)
	if !podstatus.IsStatic(pod) {
		m.observe(pod)
	}
}

// ObserveDelete takes the deletion of a pod from a watch of the node's pods. The manager forgets
// the pod with this UID, see [Manager.Forget]; a new pod with the same name is not affected. After
// the deletion of a mirror pod, the status of its static pod waits for the next mirror pod. Unlike
// Forget, ObserveDelete does not wait for the journal.
//
// For a static pod, the caller calls ObserveDelete once its last status needs no mirror pod any
// more. With Options.Pods the caller removes the pod from its table first.
func (m *Manager) ObserveDelete(pod *v1.Pod) {
	if m.table != nil {
		m.table.Remove(pod)
	}
	m.forgetSoon(pod.UID)
	m.writes.named(pod.UID, pod.Namespace, pod.Name)
}

// EventHandler returns a handler for an informer of the node's pods. The handler calls ObservePod
// and ObserveDelete in the right order, also for deletions that the watch has missed. An informer
// of more pods than the node's needs a filter:
//
//	informer.AddEventHandler(cache.FilteringResourceEventHandler{FilterFunc: onThisNode, Handler: manager.EventHandler()})
//
// Use EventHandler for a manager with its own table: with Options.Pods, the handler may be called
// before the caller's table is updated.
func (m *Manager) EventHandler() toolscache.ResourceEventHandler { return eventHandler{m} }

type eventHandler struct{ m *Manager }

func (h eventHandler) OnAdd(object any, _ bool) {
	if pod, ok := object.(*v1.Pod); ok {
		h.m.ObservePod(pod)
	}
}

// OnUpdate is also called for a pod that was deleted and created again while the watch was
// interrupted: the informer identifies pods by name.
func (h eventHandler) OnUpdate(before, after any) {
	old, hadOld := before.(*v1.Pod)
	pod, ok := after.(*v1.Pod)
	if ok && hadOld && old.UID != pod.UID {
		h.m.ObserveDelete(old)
	}
	h.OnAdd(after, false)
}

// OnDelete is also called for a pod whose deletion the watch has missed, with the newest copy
// that the informer has.
func (h eventHandler) OnDelete(object any) {
	if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	if pod, ok := object.(*v1.Pod); ok {
		h.m.ObserveDelete(pod)
	}
}

// track keeps a pod in the manager's own table, if it has one. The API has one pod of a name, so
// a pod of the API that loses its name to another one is gone.
func (m *Manager) track(pod *v1.Pod) {
	if m.table == nil {
		return
	}
	m.gone.forget(pod.UID)
	if displaced := m.table.Set(pod); displaced != nil && !podstatus.IsStatic(displaced) && !podstatus.IsStatic(pod) {
		m.ObserveDelete(displaced)
	}
}

// observe compares the API's copy of a pod with what this node says, and asks for a turn if
// they differ.
func (m *Manager) observe(pod *v1.Pod) {
	uid := m.opts.Pods.TranslateUID(pod.UID)
	now := time.Now()
	if u, ok := m.cache.observe(uid, pod, m.specOf(uid, pod), now); ok {
		m.metrics.reconciles.WithLabelValues("observed").Inc()
		m.engine.changed(turnRequest{uid: uid, urgency: u, at: now, expedite: true})
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

// fullPass compares every cached pod with the API's and returns the pods that need a turn. It is
// the safety net for missed observations, and the only scan of all pods.
func (m *Manager) fullPass() []turnRequest {
	var requests []turnRequest
	now := time.Now()
	m.writes.retry(now)
	m.gone.expire(now)
	for _, uid := range m.cache.unknown(func(types.UID) bool { return false }) {
		if u, due, expedite := m.due(uid, now); due {
			requests = append(requests, turnRequest{uid: uid, urgency: u, at: now, expedite: expedite})
		}
	}
	requests = append(requests, m.readOverdue(now)...)
	if len(requests) > 0 {
		m.metrics.reconciles.WithLabelValues("pass").Add(float64(len(requests)))
	}
	return requests
}

// due reports whether the full pass has found something to do for a pod, and how urgent that is.
func (m *Manager) due(uid types.UID, now time.Time) (u urgency, due, expedite bool) {
	pod, known := m.opts.Pods.ByUID(uid)
	api := pod
	if known && podstatus.IsStatic(pod) {
		api, known = m.opts.Pods.MirrorOf(pod)
	}
	// R1: without the API's pod there is nothing to compare with.
	if !known {
		return background, false, false
	}
	return m.cache.due(uid, pod, api, now)
}

// knows reports whether a pod was observed or reported. With a table of its own the manager
// keeps nothing of any other pod, since nothing would remove it.
func (m *Manager) knows(uid types.UID) bool {
	if m.table == nil {
		return true
	}
	_, observed := m.table.ByUID(uid)
	return observed || m.cache.load(uid) != nil
}

// Forget drops everything about one pod: its status, including unsent changes, its resize
// conditions, and its records in the journal (the allocation, the final status, the
// terminations of its containers). Call Forget for a pod that does not exist any more, or for a pod
// that starts again under the same UID, such as a static pod whose manifest comes back. The records
// are deleted durably: a restart does not bring the pod back.
//
// A request that is in flight for the pod is not canceled; its answer is ignored. A report after
// Forget stores the pod again. If the API server does not have the pod, a manager with its own
// table forgets it again.
func (m *Manager) Forget(uid types.UID) {
	if x := m.forgetSoon(uid); x != nil {
		m.unlessHung("remove pod", uid, m.writes.wait(x))
	}
}

// forgetSoon is Forget without the wait for the journal, whose write it returns.
func (m *Manager) forgetSoon(uid types.UID) *write {
	x, queued := m.forget(uid)
	if queued && m.opts.Client != nil {
		// A turn that finds nothing takes the pod out of the queue, where it may wait for long.
		m.engine.changed(turnRequest{uid: uid, urgency: background, at: time.Now(), expedite: true})
	}
	return x
}
