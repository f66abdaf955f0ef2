package status

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// The journal keeps the end of a pod until the pod itself is gone: forgotten here, or proven gone from the API. An API
// server that has accepted the end may be restored from a backup that is older, and the process that has reported the end
// may have ended by then.

// keepsFinals reports whether final statuses are kept. Without a server, no answer would show that a pod is gone. The
// final status of a static pod is never kept: the pod runs again with the next start of the node.
func (m *Manager) keepsFinals() bool { return m.opts.Journal != nil && m.opts.Client != nil }

// keepFinal has the newest status of a pod written to the journal if the pod has ended in it. It returns when that
// is done, or when the API server has the status: the write then goes on.
func (m *Manager) keepFinal(uid types.UID, stored *snapshot) error {
	m.writes.mu.Lock()
	x := m.saveFinal(uid, stored)
	m.writes.mu.Unlock()
	if x == nil || stored.delivered.Load() {
		return nil
	}
	return m.unlessHung("keep final status", uid, m.writes.wait(x))
}

// saveFinal has the newest status of a pod written to the journal if the pod has ended in it and the journal does not
// have it. The caller holds the lock of the writes.
func (m *Manager) saveFinal(uid types.UID, stored *snapshot) *write {
	if !m.keepsFinals() || !stored.isEnd() || stored.saved.Load() {
		return nil
	}
	return m.writes.addLocked(uid, writeFinal, func() error {
		newest := m.cache.load(uid)
		if !newest.isEnd() || newest.saved.Load() {
			return nil
		}
		err := m.journaled("keep final status", uid, m.opts.Journal.SetFinal(uid, podstatus.Final{
			Namespace: newest.namespace,
			Name:      newest.name,
			Version:   newest.version,
			Finished:  newest.finished,
			Vanished:  newest.vanished,
			Status:    newest.status,
		}))
		if err == nil {
			newest.saved.Store(true)
		}
		return err
	})
}

// isEnd reports whether the pod has ended in this status. The end of a static pod does not count.
func (s *snapshot) isEnd() bool { return s != nil && !s.static && s.final() }

// endAccepted ends the wait of reports for the disk: the API server has the end of the pod. The journal keeps the end.
func (m *Manager) endAccepted(p *plan) {
	m.writes.mu.Lock()
	defer m.writes.mu.Unlock()
	p.delivered.Store(true) // its report may not have come to keepFinal yet
	if m.cache.load(p.uid) == p.snapshot {
		m.writes.delivered(p.uid)
		m.saveFinal(p.uid, p.snapshot)
	}
}

// endGone removes the records of a pod that has ended and is proven gone from the API, unless there is a newer status.
func (m *Manager) endGone(p *plan) {
	if m.opts.Journal == nil || !p.isEnd() {
		return
	}
	m.writes.mu.Lock()
	defer m.writes.mu.Unlock()
	if m.cache.load(p.uid) != p.snapshot {
		return
	}
	p.delivered.Store(true)
	m.writes.addLocked(p.uid, writeRemove, func() error {
		err := m.removeFromJournal(p.uid)
		if err == nil {
			p.saved.Store(false)
		}
		return err
	})
}

// forgetEnds deletes the recorded terminations of containers that the API server's status no longer
// lists.
func (m *Manager) forgetEnds(p *plan) {
	keep := m.ends.accepted(p.uid, &p.status)
	m.writes.add(p.uid, writeForgetEnds, func() error {
		return m.journaled("forget terminations", p.uid, m.opts.Journal.RetainTerminations(p.uid, keep))
	})
}

// restoreFinals puts the final statuses of an earlier process back into the cache.
func (m *Manager) restoreFinals() {
	if !m.keepsFinals() {
		return
	}
	now := time.Now()
	restored := m.opts.Journal.Finals()
	for uid, final := range restored {
		m.cache.restore(uid, final, now)
		m.opts.Logger.Debug("final status restored from the journal", "pod", final.Namespace+"/"+final.Name, "uid", uid, "version", final.Version)
	}
	if len(restored) > 0 {
		m.opts.Logger.Info("final statuses restored from the journal", "pods", len(restored))
	}
}

// compareFinals has the restored final statuses compared with the API's: those of pods that were not listed last, since
// each of them needs requests to find out whether the pod is gone.
func (m *Manager) compareFinals(listed []v1.Pod) {
	now := time.Now()
	there := make(map[types.UID]bool, len(listed))
	for i := range listed {
		there[listed[i].UID] = true
	}
	for _, uid := range m.cache.restoredPods() {
		turn := turnRequest{uid: uid, urgency: background, at: now}
		if there[uid] {
			turn.urgency = withdrawal
		}
		m.engine.changed(turn)
	}
}

// overtaken replaces a restored final status by the API's, if the restored status is provably older: a disk failure
// prevented its deletion from the journal. It reports whether the restored status is older. After a newer report,
// nothing is replaced.
func (m *Manager) overtaken(pod *v1.Pod, restored *snapshot, api *v1.PodStatus) bool {
	if !restored.restored || !endedSince(&restored.status, api) {
		return false
	}
	next := &snapshot{namespace: restored.namespace, name: restored.name, finished: restored.finished, status: *api.DeepCopy()}
	if ok, _ := m.cache.swap(restored, next, pod, &restored.status, "New", time.Now()); ok {
		m.opts.Logger.Warn("the API server has a newer end than the journal", "pod", next.podName(), "uid", pod.UID, "version", next.version)
	}
	return true
}

// knownOvertaken is overtaken with what is known of the API's pod.
func (m *Manager) knownOvertaken(pod *v1.Pod, restored *snapshot) bool {
	known, ok := m.opts.Pods.ByUID(pod.UID)
	return ok && m.overtaken(pod, restored, &known.Status)
}

// endedSince reports whether all containers of the API's pod have terminated, and one of these terminations is
// missing in the final status from the journal. A newer final status has no fewer terminations: no container runs
// once the phase is terminal.
func endedSince(kept, api *v1.PodStatus) bool {
	if !podstatus.IsTerminal(api.Phase) {
		return false
	}
	since := false
	for i := range api.ContainerStatuses {
		there := &api.ContainerStatuses[i]
		here := podrules.StatusNamed(kept.ContainerStatuses, there.Name)
		switch {
		case there.State.Terminated == nil, here != nil && here.RestartCount > there.RestartCount:
			return false
		case here == nil, here.State.Terminated == nil, here.RestartCount < there.RestartCount:
			since = true
		}
	}
	return since
}

// journaled reports a write to the journal that failed: to the metrics, the log and the caller.
func (m *Manager) journaled(what string, uid types.UID, err error) error {
	if err == nil {
		return nil
	}
	m.metrics.journalErrors.Inc()
	m.opts.Logger.Error("journal write failed; statuses are still sent, but would not survive a crash", "what", what, "uid", uid, "err", err)
	return fmt.Errorf("status: %s of pod %s: %w", what, uid, err)
}

// writeThrough makes a write to the journal and waits for it, however long that takes.
func (m *Manager) writeThrough(what string, uid types.UID, perform func() error) error {
	x := m.writes.add(uid, writeOther, func() error { return m.journaled(what, uid, perform()) })
	<-x.done
	return x.err
}

// unlessHung reports a write that the disk has not done in time, in the same way.
func (m *Manager) unlessHung(what string, uid types.UID, err error) error {
	if errors.Is(err, errDiskHangs) {
		return m.journaled(what, uid, err)
	}
	return err
}
