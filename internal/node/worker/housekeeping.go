package worker

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/podstatus"
)

// keepHouse ends what no source knows: pods that an earlier process left in the runtime,
// and statuses of pods that are gone. keepHouse ends nothing before the sources that
// could have it have synced.
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
		w.adoptOrphans(ctx)
		if w.sourcesReady() {
			w.forgetStatuses()
		}
	}
}

func (w *Workers) sourcesReady() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

// adoptOrphans gives each pod of the runtime that no source knows a worker that ends it:
// static pods once the manifests were read, all others once all sources have synced.
func (w *Workers) adoptOrphans(ctx context.Context) {
	found, err := w.listPods(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.opts.Logger.Error("listing the pods of the runtime failed, will retry", "err", err)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.review(found)
	now := time.Now()
	maps.DeleteFunc(w.removed, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= housekeepingPeriod })
	for _, pod := range found {
		_, known := w.pods[pod.Manifest.UID]
		_, removed := w.removed[pod.Manifest.UID]
		if known || removed || !w.ready && !(w.manifests && podstatus.IsStatic(pod.Manifest)) {
			continue
		}
		w.opts.Logger.Info("ending a pod that no source knows", "pod", pod.Manifest.Namespace+"/"+pod.Manifest.Name, "uid", pod.Manifest.UID)
		p := w.add(pod.Manifest)
		p.orphan, p.inbox.gone = true, true
	}
}

// forgetStatuses removes the statuses of pods that have no worker any more, and calls OnForgotten
// for them.
func (w *Workers) forgetStatuses() {
	w.changing.Lock()
	defer w.changing.Unlock()
	w.mu.Lock()
	known, forgotten := w.known(), w.forgotten
	w.forgotten = nil
	w.mu.Unlock()
	for _, uid := range forgotten {
		if !known[uid] {
			w.opts.OnForgotten(uid)
		}
	}
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
	w.removed[p.uid] = time.Now()
	again := p.inbox.again
	if again == nil {
		w.forgotten = append(w.forgotten, p.uid)
	}
	w.mu.Unlock()
	if again == nil {
		wake.Up(w.tidy)
		return
	}
	// Only this status: before all sources have synced the statuses of other pods, which
	// have no worker yet, may hold ends that the API does not have yet.
	w.opts.Status.Forget(p.uid)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(again)
}
