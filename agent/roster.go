package agent

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/mirror"
	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/source"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/worker"
)

// roster passes on what the sources say: first to the table of pods, which all others
// read, then to the manager, the workers and the mirrors.
type roster struct {
	table   *pods.Table
	manager *status.Manager
	workers *worker.Workers
	mirrors *mirror.Mirrors // nil: standalone
	// updated is called after a pod was handed to the workers.
	updated func(*v1.Pod)
	// apiSpoke is closed when the API has said which pods it has for this node.
	apiSpoke chan struct{}

	mu     sync.Mutex // guards what follows
	silent map[source.Origin]bool
	// leaving are static pods whose manifest is gone and whose worker is not done yet. They
	// stay in the table until then, so that their last statuses reach the mirror pod.
	leaving map[types.UID]*v1.Pod
}

func newRoster(table *pods.Table, origins ...source.Origin) *roster {
	r := &roster{table: table, apiSpoke: make(chan struct{}), silent: map[source.Origin]bool{}, leaving: map[types.UID]*v1.Pod{}}
	for _, origin := range origins {
		r.silent[origin] = true
	}
	return r
}

// handle takes one change. Sources call it through source.Serial, so that what one of
// them says is not mixed with what another one does.
func (r *roster) handle(c source.Change) {
	for _, pod := range c.Pods {
		if c.Op == source.Remove {
			r.remove(pod)
		} else {
			r.update(pod, c.Origin)
		}
	}
	if r.mirrors != nil {
		r.mirrors.Observe(c)
	}
	if c.Origin == source.FromFile {
		r.workers.ManifestsReady()
	}
	if r.hasSpoken(c.Origin) {
		r.workers.SourcesReady()
	}
}

func (r *roster) update(pod *v1.Pod, origin source.Origin) {
	if origin == source.FromFile {
		r.returned(pod.UID)
	}
	r.table.Set(pod)
	if origin == source.FromAPI {
		r.manager.ObservePod(pod)
	}
	r.workers.Update(r.remembered(pod)) // which ignores mirror pods
	if r.updated != nil {
		r.updated(pod)
	}
}

// remembered gives a static pod the status that its mirror has from an earlier process, as
// a pod of the API brings its own: containers that run on stay ready until a probe says
// otherwise. An end is not remembered: what a manifest wants runs again once the runtime has
// forgotten it. Nor are the conditions of others, which change without the manifest.
func (r *roster) remembered(pod *v1.Pod) *v1.Pod {
	if !podstatus.IsStatic(pod) {
		return pod
	}
	mirror, ok := r.table.MirrorOf(pod)
	if !ok || !podstatus.IsMirrorOf(mirror, pod) || podstatus.IsTerminal(mirror.Status.Phase) {
		return pod
	}
	known := *pod
	known.Status = mirror.Status
	known.Status.Conditions = slices.DeleteFunc(slices.Clone(mirror.Status.Conditions), func(c v1.PodCondition) bool {
		return !podstatus.IsOwned(c.Type) && !podstatus.IsShared(c.Type)
	})
	return &known
}

func (r *roster) remove(pod *v1.Pod) {
	if podstatus.IsStatic(pod) {
		r.mu.Lock()
		r.leaving[pod.UID] = pod
		r.mu.Unlock()
	} else {
		r.table.Remove(pod)
	}
	r.workers.Remove(pod)
}

// returned notes that a static pod which was leaving is wanted again.
func (r *roster) returned(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.leaving, uid)
}

// hasSpoken notes that a source was heard and says whether it was the last one to wait for.
func (r *roster) hasSpoken(origin source.Origin) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.silent[origin] {
		return false
	}
	delete(r.silent, origin)
	if origin == source.FromAPI {
		close(r.apiSpoke)
	}
	return len(r.silent) == 0
}

// isLeaving says whether a static pod that nobody wants any more still has a worker.
func (r *roster) isLeaving(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, leaving := r.leaving[uid]
	return leaving
}

// release forgets a pod that was leaving and that no worker has any more.
func (r *roster) release(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pod, leaving := r.leaving[uid]; leaving {
		r.table.Remove(pod)
		delete(r.leaving, uid)
	}
}

// reporter is the status manager as the workers see it.
type reporter struct {
	*status.Manager
	*status.Resizes
}
