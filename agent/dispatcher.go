package agent

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/mirror"
	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

// dispatcher passes on the changes of the sources: first to the table of pods, which all others
// read, then to the manager, the workers and the mirrors.
type dispatcher struct {
	table   *pods.Table
	manager *status.Manager
	workers *worker.Workers
	mirrors *mirror.Mirrors // nil: standalone
	// updated is called after a pod was handed to the workers.
	updated func(*v1.Pod)
	// changed is called, with its UID, after the table has changed for a pod.
	changed func(types.UID)
	// apiListed is closed when the pods that the API has for this node were listed, allListed when those
	// of all sources were.
	apiListed, allListed chan struct{}

	mu       sync.Mutex // guards what follows
	unsynced map[source.Origin]bool
	// leaving are static pods without a manifest whose worker has not finished yet. They stay in
	// the table until the worker has finished, so that their last statuses reach the mirror pod.
	leaving map[types.UID]*v1.Pod
}

func newDispatcher(table *pods.Table, origins ...source.Origin) *dispatcher {
	d := &dispatcher{table: table, changed: func(types.UID) {}, apiListed: make(chan struct{}), allListed: make(chan struct{}), unsynced: map[source.Origin]bool{}, leaving: map[types.UID]*v1.Pod{}}
	for _, origin := range origins {
		d.unsynced[origin] = true
	}
	return d
}

// handle takes one change. Sources call it through source.Serial, so that changes of two sources
// do not mix.
func (d *dispatcher) handle(c source.Change) {
	for _, pod := range c.Pods {
		if c.Op == source.Remove {
			d.remove(pod)
		} else {
			d.update(pod, c.Origin)
		}
	}
	if d.mirrors != nil {
		d.mirrors.Observe(c)
	}
	if c.Origin == source.FromFile {
		d.workers.ManifestsReady()
	}
	if d.hasSynced(c.Origin) {
		d.workers.SourcesReady()
	}
}

func (d *dispatcher) update(pod *v1.Pod, origin source.Origin) {
	if origin == source.FromFile {
		d.returned(pod.UID)
	}
	d.table.Set(pod)
	if origin == source.FromAPI {
		d.manager.ObservePod(pod)
	}
	d.workers.Update(d.withMirrorStatus(pod)) // which ignores mirror pods
	if d.updated != nil {
		d.updated(pod)
	}
	d.changed(pod.UID)
}

// withMirrorStatus gives a static pod the status that its mirror has from an earlier process.
func (d *dispatcher) withMirrorStatus(pod *v1.Pod) *v1.Pod {
	if mirror, ok := d.table.MirrorOf(pod); ok && podstatus.IsStatic(pod) {
		return podrules.WithMirrorStatus(pod, mirror)
	}
	return pod
}

func (d *dispatcher) remove(pod *v1.Pod) {
	if podstatus.IsStatic(pod) {
		d.mu.Lock()
		d.leaving[pod.UID] = pod
		d.mu.Unlock()
	} else {
		d.table.Remove(pod)
	}
	d.workers.Remove(pod)
	d.changed(pod.UID)
}

// returned records that the manifest of a leaving static pod is back.
func (d *dispatcher) returned(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.leaving, uid)
}

// hasSynced notes that a source has delivered its pods once, and reports whether that was the last
// source to wait for.
func (d *dispatcher) hasSynced(origin source.Origin) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.unsynced[origin] {
		return false
	}
	delete(d.unsynced, origin)
	if origin == source.FromAPI {
		close(d.apiListed)
	}
	if len(d.unsynced) > 0 {
		return false
	}
	close(d.allListed)
	return true
}

// isLeaving reports whether a static pod whose manifest is gone still has a worker.
func (d *dispatcher) isLeaving(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, leaving := d.leaving[uid]
	return leaving
}

// release forgets a leaving pod that no longer has a worker.
func (d *dispatcher) release(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pod, leaving := d.leaving[uid]; leaving {
		d.table.Remove(pod)
		delete(d.leaving, uid)
		d.changed(uid)
	}
}

// reporter is the status manager as the workers see it.
type reporter struct {
	*status.Manager
	*status.Resizes
}
