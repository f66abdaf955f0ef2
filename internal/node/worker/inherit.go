package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// leftover is a pod that an earlier process left in the runtime. Only containers that could still
// run take room on the node or keep another pod waiting.
type leftover struct {
	pod *v1.Pod
	// alive reports that one of its containers could run.
	alive bool
	// over reports that the pod's containers have ended for good.
	over bool
}

func newLeftover(found *runtime.Pod) leftover {
	facts := podstatus.Facts{Attempts: attempts(found.Containers), Sandbox: true}
	status := podstatus.Generate(found.Manifest, facts, v1.PodStatus{}, time.Time{})
	return leftover{
		pod:   found.Manifest,
		alive: len(allAlive(found.Containers)) > 0,
		over:  podstatus.IsTerminal(status.Phase),
	}
}

func (l leftover) name() types.NamespacedName {
	return types.NamespacedName{Namespace: l.pod.Namespace, Name: l.pod.Name}
}

// mayRunAgain reports whether a pod without running containers may run again, as in a back-off or
// after a restart of the machine.
func (l leftover) mayRunAgain(m inbox) bool {
	return !l.over && !m.gone && m.pod.DeletionTimestamp == nil && !podstatus.IsTerminal(m.pod.Status.Phase)
}

// inherit asks the runtime what an earlier process has left, until it answers.
func (w *Workers) inherit(ctx context.Context) error {
	for {
		found, err := w.listPods(ctx)
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.inherited = make(map[types.UID]leftover, len(found))
			for i := range found {
				w.inherited[found[i].Manifest.UID] = newLeftover(&found[i])
			}
			w.listed = true
			return nil
		}
		w.opts.Logger.Error("listing the pods of the runtime failed, no pod is started before", "err", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookRetry):
		}
	}
}

// changed handles a change of a pod in the runtime: its worker takes a turn, or
// housekeeping does if it has none.
func (w *Workers) changed(uid types.UID) {
	w.mu.Lock()
	_, left := w.inherited[uid]
	_, known := w.pods[uid]
	w.mu.Unlock()
	if left && !known {
		wake.Up(w.tidy)
		return
	}
	w.Sync(uid)
}

// review looks again at what an earlier process has left and no source has named yet, and
// wakes the static pods that wait for the end of one of them. The caller holds mu.
func (w *Workers) review(found []runtime.Pod) {
	listed := make(map[types.UID]bool, len(found))
	for i := range found {
		listed[found[i].Manifest.UID] = true
	}
	for uid, left := range w.inherited {
		if _, known := w.pods[uid]; !known && !listed[uid] {
			delete(w.inherited, uid)
			w.wakeNamesakes(left.name())
		}
	}
	for i := range found {
		uid := found[i].Manifest.UID
		before, left := w.inherited[uid]
		if _, known := w.pods[uid]; !left || known {
			continue
		}
		now := newLeftover(&found[i])
		w.inherited[uid] = now
		if before.alive && !now.alive {
			w.wakeNamesakes(now.name())
		}
	}
}

// wakeNamesakes has the pods of a name look whether they still have to wait. The caller holds mu.
func (w *Workers) wakeNamesakes(name types.NamespacedName) {
	for _, p := range w.pods {
		if p.name == name {
			p.poke()
		}
	}
}
