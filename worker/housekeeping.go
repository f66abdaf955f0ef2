package worker

import (
	"context"
	"time"
)

// keepHouse ends what nobody knows: pods that an earlier process left in the runtime,
// and statuses of pods that are gone. It does nothing before all sources have spoken.
func (w *Workers) keepHouse(ctx context.Context) {
	ticker := time.NewTicker(housekeepingPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-w.tidy:
		}
		if w.sourcesReady() {
			w.adoptOrphans(ctx)
			w.forgetStatuses()
		}
	}
}

func (w *Workers) sourcesReady() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

// adoptOrphans gives each pod of the runtime that nobody knows a worker that ends it.
func (w *Workers) adoptOrphans(ctx context.Context) {
	found, err := w.opts.Runtime.Pods(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.opts.Logger.Error("cannot look for orphans in the runtime", "err", err)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range found {
		if _, known := w.pods[pod.Manifest.UID]; known {
			continue
		}
		w.opts.Logger.Info("ending a pod that no source knows", "pod", pod.Manifest.Namespace+"/"+pod.Manifest.Name, "uid", pod.Manifest.UID)
		p := w.add(pod.Manifest)
		p.orphan, p.mail.gone = true, true
	}
}

// forgetStatuses removes the statuses of pods that have no worker any more.
func (w *Workers) forgetStatuses() {
	w.changing.Lock()
	defer w.changing.Unlock()
	w.mu.Lock()
	known := w.known()
	w.mu.Unlock()
	w.opts.Status.RemoveOrphanedStatuses(known)
}

// forget ends the life of a worker. A pod that came back meanwhile begins another one,
// without the status of the first.
func (w *Workers) forget(p *worker) {
	w.changing.Lock()
	defer w.changing.Unlock()
	w.mu.Lock()
	delete(w.pods, p.uid)
	delete(w.inherited, p.uid)
	again, known := p.mail.again, w.known()
	w.mu.Unlock()
	if again == nil {
		signal(w.tidy)
		return
	}
	w.opts.Status.RemoveOrphanedStatuses(known)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(again)
}
