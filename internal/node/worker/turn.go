package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/instant"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// state is the worker's state between turns. A new process begins with an empty state; lasting
// facts are in the runtime and in the status manager.
type state struct {
	stage           stage
	admitted        bool
	hasSandbox      bool                  // this process has started the sandbox
	sandboxFailures int                   // failed tries to start the sandbox since it was last started
	sandboxes       int                   // started since a container could last be started
	rejectAt        time.Time             // when a rejection is reported that was put off
	waitsFor        types.UID             // the pod whose end it waits for before it may start
	recorded        *podstatus.Allocation // what the journal has of the pod's resources

	backOffs         map[string]backOff                  // by container name
	retries          map[string]retry                    // by container name
	waiting          map[string]v1.ContainerStateWaiting // by container name
	minAttempt       map[string]int                      // by container name: older attempts are history
	restarting       map[string]bool                     // by container ID
	observed         map[string]bool                     // container IDs whose end was recorded
	ends             map[string]time.Time                // by container ID: when its end was first seen
	stops            map[string]stopping                 // by container ID
	actuated         map[string]v1.ResourceRequirements  // by container ID: the resources that it runs with
	cancels          map[hookKey]context.CancelFunc      // of the hooks that run
	begun            map[hookKey]begunHook               // the hooks that run
	dues             map[string]time.Time                // by container name: starts that are put off
	runningPostStart string                              // the container ID whose postStart hook runs
	created          map[string]bool                     // container IDs that did not run yet
	pulling          map[string]time.Time                // by container name: since when its image is pulled

	endBy         time.Time // the end of the pod's grace; it is never put off
	evicted       *Eviction // why the node ends it
	probesStopped bool
	volumesGone   bool
	resizeAfter   time.Time // when a resize that has failed is tried again
}

func newState() state {
	return state{
		backOffs:   map[string]backOff{},
		retries:    map[string]retry{},
		waiting:    map[string]v1.ContainerStateWaiting{},
		minAttempt: map[string]int{},
		restarting: map[string]bool{},
		observed:   map[string]bool{},
		ends:       map[string]time.Time{},
		stops:      map[string]stopping{},
		actuated:   map[string]v1.ResourceRequirements{},
		cancels:    map[hookKey]context.CancelFunc{},
		begun:      map[hookKey]begunHook{},
		created:    map[string]bool{},
		pulling:    map[string]time.Time{},
	}
}

// turn observes the pod, reports its status, and takes the due actions. turn returns when the next
// turn is due even if nothing happens, zero if none is due, and whether the worker is done.
func (p *worker) turn(ctx context.Context) (next time.Time, over bool) {
	in, now := p.readInbox(), time.Now()
	p.handleHookEnds(in.pod, in.ended, now)
	if p.stage == finished {
		if in.gone {
			return p.remove(ctx, now)
		}
		if !p.orphan && !p.removeVolumes(ctx) {
			return now.Add(p.w.opts.Resync), false
		}
		return time.Time{}, false
	}
	s, err := p.observe(ctx, in.pod)
	if err != nil {
		if ctx.Err() == nil {
			p.log.Error("runtime query failed, will retry", "err", err)
		}
		return now.Add(lookRetry), false
	}
	p.tidy(s.found.Containers)
	p.noteEnds(s.found.Containers, now)
	p.observeEnds(s.found.Containers)
	p.evicted, p.dues = in.evicted, nil
	if p.stage == syncing && !mustEnd(&in, s) {
		p.noteBegins(ctx, in.pod, s.found.Containers)
		if in.evicted != nil {
			return p.hold(ctx, &in, s, now), false
		}
		return p.sync(ctx, &in, s, now), false
	}
	if p.stage == syncing {
		p.beginsToEnd(&in, now)
		p.enter(terminating)
	}
	if in.evicted != nil {
		p.endBy = instant.Earlier(p.endBy, in.evictedAt.Add(evictionGrace(&in)))
	}
	return p.end(ctx, in.pod, s, now), false
}

// mustEnd reports whether the pod must not run any more: its source or the API says so,
// or it has ended before. A finished pod is never started again.
func mustEnd(in *input, s *observation) bool {
	return in.gone || in.pod.DeletionTimestamp != nil || in.evicted != nil && !in.evicted.Hold ||
		podstatus.IsTerminal(s.old.Phase) || podstatus.IsTerminal(in.pod.Status.Phase)
}

// observe asks the runtime and the status manager for all that a status is made from.
func (p *worker) observe(ctx context.Context, pod *v1.Pod) (*observation, error) {
	found, err := p.w.listPod(ctx, p.uid)
	known := err == nil
	if err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return nil, err
	}
	old, reported := p.w.opts.Status.GetPodStatus(p.uid)
	if !reported {
		old = pod.Status
	}
	return &observation{pod: pod, known: known, found: found, old: &old}, nil
}

// noteEnds remembers when ends were first seen, for back-offs that no step of the wall
// clock can prolong.
func (p *worker) noteEnds(containers []runtime.Container, now time.Time) {
	for i := range containers {
		c := &containers[i]
		if _, noted := p.ends[c.ID]; !noted && !alive(c) {
			p.ends[c.ID] = now
		}
	}
}

// observeEnds makes sure that ends that were seen here are not lost with this process.
func (p *worker) observeEnds(containers []runtime.Container) {
	for i := range containers {
		c := &containers[i]
		if alive(c) || p.observed[c.ID] || p.orphan {
			continue
		}
		end := attempt(c)
		if err := p.w.opts.Status.ObserveTermination(p.uid, c.ID, *end.Terminated()); err != nil {
			p.log.Error("recording a container termination failed, will retry", "container", c.Name, "err", err)
			continue // again in the next turn
		}
		p.observed[c.ID] = true
	}
}

// present are the containers since the last restart of the whole pod.
func (p *worker) present(containers []runtime.Container) []runtime.Container {
	return slices.DeleteFunc(slices.Clone(containers), func(c runtime.Container) bool {
		return c.Attempt < p.minAttempt[c.Name]
	})
}

// shown returns the containers as the API shows them. A container whose postStart hook still runs
// is not included yet, and a container whose hook has failed is included after it has ended.
func (p *worker) shown(containers []runtime.Container) []runtime.Container {
	return slices.DeleteFunc(p.present(containers), func(c runtime.Container) bool {
		return (c.ID == p.runningPostStart || p.stops[c.ID].postStartFailed) && alive(&c)
	})
}

func (p *worker) event(pod *v1.Pod, container, eventType, reason, message string) {
	if !p.orphan {
		p.w.opts.Recorder.Event(pod, container, eventType, reason, message)
	}
}
