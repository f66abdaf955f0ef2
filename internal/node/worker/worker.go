package worker

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// stage is where a pod is in its life here. It only moves forward.
type stage int

const (
	syncing     stage = iota // it should run
	terminating              // its running containers are being stopped
	stopped                  // none of its containers runs any more
	finished                 // its last status was reported
)

// worker is the state machine of one pod. One goroutine owns it; other goroutines write to its
// inbox and wake it.
type worker struct {
	w      *Workers
	uid    types.UID
	name   types.NamespacedName
	order  int  // by which the pods were added
	static bool // it waits for an older pod of the same name
	orphan bool // no source knows it: its status is not reported

	inbox inbox         // guarded by Workers.mu
	wake  chan struct{} // capacity 1: one pending signal covers everything in the inbox

	state                // what the goroutine keeps between its turns
	hooks sync.WaitGroup // the hooks that run
	log   *slog.Logger
}

// inbox is the part of a worker that other goroutines share: updates for it, and its progress.
type inbox struct {
	pod       *v1.Pod
	revision  int                          // grows with each update that a worker acts on
	gone      bool                         // it does not belong here any more
	again     *v1.Pod                      // it came back after it was gone
	unhealthy map[string]runtime.ProbeKind // by container ID
	restarts  map[string]string            // why containers are to be restarted, by ID
	ended     []hookEnd
	admitted  bool
	allocated *podstatus.Allocation // the resources of the pod, once it is admitted
	resizing  bool                  // it asks for others
	wantsRoom bool                  // it waits for pods that leave
	stage     stage
	evicted   *Eviction
	evictedAt time.Time
	facts     map[string]podstatus.ContainerFacts // replaced after each turn, never changed
	pulling   map[string]time.Time                // likewise
	waiting   []chan struct{}                     // closed once nothing of the pod runs
	abandon   context.CancelFunc                  // of the start that is under way, if any
}

func newWorker(w *Workers, pod *v1.Pod, order int) *worker {
	p := &worker{
		w:      w,
		uid:    pod.UID,
		name:   types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
		order:  order,
		static: podstatus.IsStatic(pod),
		inbox:  inbox{pod: pod, unhealthy: map[string]runtime.ProbeKind{}, restarts: map[string]string{}},
		wake:   make(chan struct{}, 1),
		state:  newState(),
		log:    w.opts.Logger.With("pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID),
	}
	p.resume(w.kept[pod.UID])
	return p
}

// poke makes the worker take a turn.
func (p *worker) poke() { wake.Up(p.wake) }

// live gives the pod a turn whenever something has happened or is due, until it is over
// or ctx ends. Hooks that run end with it; containers do not.
func (p *worker) live(ctx context.Context) {
	defer p.hooks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-timer.C:
		}
		if ctx.Err() != nil { // a turn would take calls that the shutdown has canceled for failures
			p.w.opts.Memory.keep(p.uid, &p.state)
			return
		}
		begin := time.Now()
		next, over := p.turn(ctx)
		p.w.count.turns.Observe(time.Since(begin).Seconds())
		if over {
			return
		}
		p.publish()
		timer.Reset(p.pause(next))
	}
}

// pause is how long to wait when nothing happens. A finished pod needs no resync.
func (p *worker) pause(next time.Time) time.Duration {
	switch {
	case !next.IsZero():
		return max(0, min(time.Until(next), p.w.opts.Resync))
	case p.stage == finished:
		return 1<<63 - 1
	}
	return p.w.opts.Resync
}

// input is a copy of the inbox, for one turn.
type input struct {
	pod       *v1.Pod // with its allocated resources
	desired   *v1.Pod // as its source has it
	revision  int
	allocated *podstatus.Allocation
	gone      bool
	unhealthy map[string]runtime.ProbeKind
	restarts  map[string]string
	ended     []hookEnd
	blocked   types.UID // the pod to wait for
	evicted   *Eviction
	evictedAt time.Time
}

func (p *worker) readInbox() input {
	l := p.copyInbox()
	l.pod = withAllocation(l.desired, l.allocated)
	return l
}

func (p *worker) copyInbox() input {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	l := input{
		desired:   p.inbox.pod,
		revision:  p.inbox.revision,
		allocated: p.inbox.allocated,
		gone:      p.inbox.gone,
		unhealthy: maps.Clone(p.inbox.unhealthy),
		restarts:  maps.Clone(p.inbox.restarts),
		ended:     p.inbox.ended,
		blocked:   w.blocked(p),
		evicted:   p.inbox.evicted,
		evictedAt: p.inbox.evictedAt,
	}
	p.inbox.ended = nil
	return l
}

// blocked returns the static pod of the same name that a static pod has to wait for, or "". Pods of
// the API never block it: the name of a mirror pod is not theirs. The caller holds mu.
func (w *Workers) blocked(p *worker) types.UID {
	if !p.static || p.inbox.admitted {
		return ""
	}
	for uid, left := range w.inherited {
		if _, known := w.pods[uid]; !known && left.alive && podstatus.IsStatic(left.pod) &&
			left.name() == p.name {
			return uid
		}
	}
	for _, other := range w.pods {
		if other != p && other.static && other.name == p.name && other.inbox.stage < stopped && (other.order < p.order || other.orphan) {
			return other.uid
		}
	}
	return ""
}

// enter moves on to a later stage and wakes what waits for it.
func (p *worker) enter(s stage) {
	p.stage = s
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	p.inbox.stage = s
	if s != stopped {
		return
	}
	p.inbox.releaseWaiting()
	w.wakeNamesakes(p.name)
	w.wakeRoom() // there is room now
}
