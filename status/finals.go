package status

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// finals keeps the journal's copy of final statuses in step with the cache: written
// before a report returns, deleted once the API server has the status.
type finals struct {
	// unsaved holds the UIDs of pods whose end could not be written. It is tried again with
	// each try to deliver it.
	unsaved sync.Map
	// locks, one for a share of the pods each, keep an older version of a pod from being
	// written after a newer one. They are held while the disk is written.
	locks [16]sync.Mutex
}

var finalsSeed = maphash.MakeSeed()

func (f *finals) lock(uid types.UID) *sync.Mutex {
	return &f.locks[maphash.String(finalsSeed, string(uid))%uint64(len(f.locks))]
}

// keepsFinals reports whether final statuses are kept until the API server has them. Without a
// server none ever would, and they would pin pods to their end at each start. The end of a
// static pod is never kept: with the next start of the node it begins another life.
func (m *Manager) keepsFinals() bool { return m.opts.Journal != nil && m.opts.Client != nil }

// keepFinal writes the newest status of a pod to the journal if the pod has ended in it.
func (m *Manager) keepFinal(uid types.UID, stored *snapshot) error {
	if !m.keepsFinals() || stored.static || !stored.final() {
		return nil
	}
	lock := m.finals.lock(uid)
	lock.Lock()
	defer lock.Unlock()
	newest := m.cache.load(uid)
	if newest == nil || newest.static || !newest.final() || newest.forgotten {
		return nil
	}
	err := m.journaled("keep final status", uid, m.opts.Journal.SetFinal(uid, podstatus.Final{
		Namespace: newest.namespace,
		Name:      newest.name,
		Version:   newest.version,
		Finished:  newest.finished,
		Status:    newest.status,
	}))
	if err != nil {
		m.finals.unsaved.Store(uid, true)
	} else {
		m.finals.unsaved.Delete(uid)
	}
	return err
}

// journalPatience is how long the end of Run waits for the disk. A write to a disk that hangs cannot
// be canceled; what it was to write is then left to the next start.
const journalPatience = 5 * time.Second

// inJournal does the writes to the journal that a turn has led to. It returns without them if
// the disk hangs and the context ends.
func inJournal(ctx context.Context, writes []func()) {
	if len(writes) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, write := range writes {
			write()
		}
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	select {
	case <-done:
	case <-time.After(journalPatience):
	}
}

// forgetEnds deletes the recorded ends of containers that the API server's status has left
// behind.
func (m *Manager) forgetEnds(p *plan) {
	if m.opts.Journal == nil {
		return
	}
	keep := m.ends.accepted(p.uid, &p.status)
	m.journaled("forget terminations", p.uid, m.opts.Journal.RetainTerminations(p.uid, keep))
}

// forgetFinal deletes what the API server has accepted, unless there is something newer.
func (m *Manager) forgetFinal(p *plan) {
	if m.opts.Journal == nil {
		return
	}
	lock := m.finals.lock(p.uid)
	lock.Lock()
	defer lock.Unlock()
	if m.cache.load(p.uid) != p.snapshot {
		return
	}
	p.forgotten = true // its report may not have come to keepFinal yet
	m.finals.unsaved.Delete(p.uid)
	m.journaled("forget final status", p.uid, m.opts.Journal.DeleteFinal(p.uid))
	m.journaled("forget terminations", p.uid, m.opts.Journal.DeleteTerminations(p.uid))
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

// journaled reports a write to the journal that failed: to the metrics, the log and the caller.
func (m *Manager) journaled(what string, uid types.UID, err error) error {
	if err == nil {
		return nil
	}
	m.metrics.journalErrors.Inc()
	m.opts.Logger.Error("journal write failed; statuses are still sent, but would not survive a crash", "what", what, "uid", uid, "err", err)
	return fmt.Errorf("status: %s of pod %s: %w", what, uid, err)
}
