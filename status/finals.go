package status

import (
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// finals keeps the journal's copy of final statuses in step with the cache: written
// before a report returns, unless the API server has the status by then, and deleted once it has.
type finals struct {
	// unsaved holds the UIDs of pods whose end could not be written. It is tried again with
	// each try to deliver it.
	unsaved sync.Map
}

// keepsFinals reports whether final statuses are kept until the API server has them. Without a
// server, final statuses would stay forever and end the pods again at each start. The final status
// of a static pod is never kept: the pod runs again with the next start of the node.
func (m *Manager) keepsFinals() bool { return m.opts.Journal != nil && m.opts.Client != nil }

// keepFinal writes the newest status of a pod to the journal if the pod has ended in it. It returns when that
// is done, or when the API server has the status.
func (m *Manager) keepFinal(uid types.UID, stored *snapshot) error {
	x := m.saveFinal(uid, stored)
	if x == nil {
		return nil
	}
	return m.unlessHung("keep final status", uid, m.writes.wait(x))
}

// saveFinal writes the newest status of a pod to the journal if it is final and the API server does not have it
// already: queued behind the deletion of an earlier copy, the report would wait for a disk that it does not need.
func (m *Manager) saveFinal(uid types.UID, stored *snapshot) *write {
	if !m.keepsFinals() || stored.static || !stored.final() {
		return nil
	}
	m.writes.mu.Lock()
	defer m.writes.mu.Unlock()
	if !m.cache.load(uid).undeliveredEnd() {
		return nil
	}
	return m.writes.addLocked(uid, writeFinal, func() error {
		newest := m.cache.load(uid)
		if !newest.undeliveredEnd() {
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
		if err != nil {
			m.finals.unsaved.Store(uid, true)
		} else {
			m.finals.unsaved.Delete(uid)
		}
		return err
	})
}

// undeliveredEnd reports whether the pod has ended in this status and the API server does not have the status. The
// end of a static pod does not count.
func (s *snapshot) undeliveredEnd() bool {
	return s != nil && !s.static && s.final() && !s.forgotten.Load()
}

// forgetEnds deletes the recorded terminations of containers that the API server's status no longer
// lists.
func (m *Manager) forgetEnds(p *plan) {
	keep := m.ends.accepted(p.uid, &p.status)
	m.writes.add(p.uid, writeForgetEnds, func() error {
		return m.journaled("forget terminations", p.uid, m.opts.Journal.RetainTerminations(p.uid, keep))
	})
}

// forgetFinal deletes the final status that the API server has accepted, unless there is a newer
// one.
func (m *Manager) forgetFinal(p *plan) {
	if m.opts.Journal == nil {
		return
	}
	m.writes.mu.Lock()
	defer m.writes.mu.Unlock()
	if m.cache.load(p.uid) != p.snapshot {
		return
	}
	p.forgotten.Store(true) // its report may not have come to keepFinal yet
	m.writes.delivered(p.uid)
	m.writes.addLocked(p.uid, writeForgetFinal, func() error {
		if m.cache.load(p.uid) != p.snapshot {
			return nil
		}
		m.finals.unsaved.Delete(p.uid)
		return errors.Join(
			m.journaled("forget final status", p.uid, m.opts.Journal.DeleteFinal(p.uid)),
			m.journaled("forget terminations", p.uid, m.opts.Journal.DeleteTerminations(p.uid)))
	})
}

// restoreFinals puts the final statuses of an earlier process back into the cache and
// has them sent.
func (m *Manager) restoreFinals() {
	if !m.keepsFinals() {
		return
	}
	now := time.Now()
	for uid, final := range m.opts.Journal.Finals() {
		m.cache.restore(uid, final, now)
		m.opts.Logger.Info("final status restored from the journal", "pod", final.Namespace+"/"+final.Name, "uid", uid, "version", final.Version)
		m.engine.changed(turnRequest{uid: uid, urgency: withdrawal, at: now})
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
