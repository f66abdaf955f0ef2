package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

const (
	// startRetry is the pause after a start that left nothing behind.
	startRetry = 10 * time.Second
	// lookRetry is the pause after a query of the runtime that failed.
	lookRetry = time.Second
	// housekeepingPeriod is how often orphans are looked for though nothing has happened.
	housekeepingPeriod = 30 * time.Second
)

// sandboxRetries are the pauses after failed tries to start the sandbox of a pod. The first ones are short: often
// the API server only needs a moment to see that the pod is on this node, and to give it its volumes.
var sandboxRetries = backoff.Schedule{First: 500 * time.Millisecond, Limit: startRetry}

// ErrRunning is returned by a second call of Run.
var ErrRunning = errors.New("worker: Run may be called only once")

// Workers brings the pods of a node to their desired states. See the package comment for its use.
// All methods may be called from any goroutine.
type Workers struct {
	opts  Options
	count *metrics

	// changing keeps the set of pods as it is while statuses of unknown pods are removed:
	// a pod that is added meanwhile must not lose its first one. It is taken before mu.
	changing sync.Mutex

	// admitting lets one pod at a time be admitted, so that no two take the same room.
	// It is taken before mu.
	admitting sync.Mutex

	brake brake               // of rejections
	kept  map[types.UID]waits // of earlier Workers of the process

	mu   sync.Mutex // guards all below, and the inbox of each worker
	pods map[types.UID]*worker
	// inherited are the pods that an earlier process left in the runtime, until their
	// workers are done with them.
	inherited map[types.UID]leftover
	// removed are the pods that workers were done with, and when. A runtime may list them for
	// a while after it has removed them.
	removed   map[types.UID]time.Time
	fresh     []*worker   // without a goroutine yet
	forgotten []types.UID // OnForgotten was not called yet
	added     int
	listed    bool // inherited is known
	manifests bool // all manifests were read
	ready     bool // all sources have synced
	running   bool

	wake chan struct{} // capacity 1: a signal that waits is enough for all in fresh
	tidy chan struct{} // capacity 1: likewise for housekeeping
}

// New returns workers for no pods. New starts nothing: see [Workers.Run].
func New(options Options) (*Workers, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	options.setDefaults()
	w := &Workers{
		opts: options, count: newMetrics(), kept: options.Memory.take(),
		pods: map[types.UID]*worker{}, removed: map[types.UID]time.Time{},
		wake: make(chan struct{}, 1),
		tidy: make(chan struct{}, 1),
	}
	if err := w.count.register(options.Registerer, w); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	return w, nil
}

// Run manages the pods until the context ends, and returns once all its goroutines have ended.
// Containers keep running: the next process adopts them.
func (w *Workers) Run(ctx context.Context) error {
	w.mu.Lock()
	second := w.running
	w.running = true
	w.mu.Unlock()
	if second {
		return ErrRunning
	}
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	changes := w.opts.Runtime.Watch(ctx) // before the list, so that nothing is missed
	if err := w.inherit(ctx); err != nil {
		return nil
	}
	group.Go(func() { w.keepHouse(ctx) })
	var again <-chan time.Time // when to watch again after a watch that ended
	for {
		for _, p := range w.takeFresh() {
			group.Go(func() { p.live(ctx) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case uid, open := <-changes:
			if open {
				w.changed(uid)
			} else if ctx.Err() == nil {
				w.opts.Logger.Error("watch of the runtime ended, watching again", "after", lookRetry)
				changes, again = nil, time.After(lookRetry)
			}
		case <-again:
			changes, again = w.opts.Runtime.Watch(ctx), nil
			w.syncAll() // what happened meanwhile
		}
	}
}

func (w *Workers) takeFresh() []*worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := w.fresh
	w.fresh = nil
	return fresh
}

// Update sets how a pod of this node should be: it is new, or its spec, its metadata, its
// deletion or its API status has changed. The pod must not be changed by the caller
// afterwards. Mirror pods are ignored, and an update in which only the status differs that
// this node reports wakes no worker.
//
// A static pod whose manifest was edited is another pod: Remove the old UID, then Update
// with the new one, which is not started before all of the old one has ended.
func (w *Workers) Update(pod *v1.Pod) {
	if podstatus.IsMirror(pod) {
		return
	}
	w.changing.Lock()
	defer w.changing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	p, known := w.pods[pod.UID]
	switch {
	case !known:
		w.add(pod)
	case p.inbox.gone:
		p.inbox.again = pod // once the worker has ended the pod's first life
	default:
		before := p.inbox.pod
		p.inbox.pod = pod
		ended := p.inbox.stage == syncing && podstatus.IsTerminal(pod.Status.Phase) // by another writer
		if ended || needsTurn(before, pod) {
			p.inbox.revision++
			p.inbox.abandonStart()
			p.poke()
		}
	}
}

// Remove reports that a pod does not belong on this node any more. pod is the last known object,
// whose grace period counts. Its running containers are ended, and then all its remains are
// removed.
func (w *Workers) Remove(pod *v1.Pod) {
	if podstatus.IsMirror(pod) {
		return
	}
	w.changing.Lock()
	defer w.changing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	p, known := w.pods[pod.UID]
	if !known {
		w.forgotten = append(w.forgotten, pod.UID)
		wake.Up(w.tidy)
		return
	}
	p.inbox.again = nil
	if !p.inbox.gone {
		p.inbox.gone = true
		p.inbox.pod = pod
		p.inbox.revision++
		p.inbox.abandonStart()
		p.poke()
	}
}

// SourcesReady reports that every source of pods has synced: from now on a pod without a source
// does not belong on this node, and its running containers are ended.
func (w *Workers) SourcesReady() {
	w.mu.Lock()
	w.ready = true
	w.wakeRoom()
	w.mu.Unlock()
	wake.Up(w.tidy)
}

// ManifestsReady reports that the manifests of static pods were read once: from now on a
// static pod of the runtime that no manifest names is ended, so that its successor does
// not have to wait for the other sources. The API may be one of those static pods.
func (w *Workers) ManifestsReady() {
	w.mu.Lock()
	w.manifests = true
	w.mu.Unlock()
	wake.Up(w.tidy)
}

// Sync triggers a turn of a pod, because a dependency of the pod has changed.
func (w *Workers) Sync(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, known := w.pods[uid]; known {
		p.poke()
	}
}

// syncAll gives every pod a turn, and housekeeping those without a worker.
func (w *Workers) syncAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		p.poke()
	}
	wake.Up(w.tidy)
}

// ContainerUnhealthy reports that a container has failed its liveness or startup probe. The
// container is stopped, and started again if its restart policy allows it. If the container has
// been replaced meanwhile, nothing happens.
func (w *Workers) ContainerUnhealthy(uid types.UID, containerID string, probe runtime.ProbeKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, known := w.pods[uid]; known {
		p.inbox.unhealthy[containerID] = probe
		p.poke()
	}
}

// RestartContainer stops a running container, with its hook and the grace of the pod, and starts it again
// after its back-off. RestartContainer returns an error if the pod is unknown or ending, or if the restart policy of the
// container is Never. If the container has been replaced meanwhile, nothing happens.
func (w *Workers) RestartContainer(uid types.UID, container, containerID, reason string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, known := w.pods[uid]
	if !known || p.inbox.gone || p.inbox.evicted != nil || p.inbox.stage != syncing || p.inbox.pod.DeletionTimestamp != nil {
		return errEnding
	}
	spec := podstatus.FindContainer(p.inbox.pod, container)
	if spec == nil {
		return fmt.Errorf("worker: the pod has no container %q", container)
	}
	if !runsAgainAfterProbe(p.inbox.pod, spec) {
		return errNeverRestarted
	}
	p.inbox.restarts[containerID] = reason
	p.poke()
	return nil
}

// Why containers are not restarted.
var (
	errEnding         = errors.New("worker: the pod is not known here, or is ending")
	errNeverRestarted = errors.New("worker: the restart policy of the container is Never")
)

// CouldHaveRunningContainers implements the status manager's Safety. CouldHaveRunningContainers returns false once
// every container of the pod has exited. For an unknown pod it returns true until all
// sources have synced and the runtime was listed.
func (w *Workers) CouldHaveRunningContainers(pod *v1.Pod) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, known := w.pods[pod.UID]; known {
		return p.inbox.stage < stopped
	}
	_, left := w.inherited[pod.UID]
	return left || !w.listed || !w.ready
}

// add makes a worker for a pod. The caller holds mu.
func (w *Workers) add(pod *v1.Pod) *worker {
	w.added++
	p := newWorker(w, pod, w.added)
	w.pods[pod.UID] = p
	w.fresh = append(w.fresh, p)
	wake.Up(w.wake)
	return p
}

// known are the pods that have a worker. The caller holds mu.
func (w *Workers) known() map[types.UID]bool {
	known := make(map[types.UID]bool, len(w.pods))
	for uid := range maps.Keys(w.pods) {
		known[uid] = true
	}
	return known
}
