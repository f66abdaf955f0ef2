package worker

import (
	"context"
	"errors"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/instant"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// end is the turn of a pod that must not run any more: stop what runs, within the grace
// that is left, and then report how it ended.
func (p *worker) end(ctx context.Context, pod *v1.Pod, s *observation, now time.Time) (next time.Time) {
	p.endBy = instant.Earlier(p.endBy, now.Add(podGrace(pod)))
	p.abandonPostStart()
	if len(allAlive(s.found.Containers)) == 0 {
		p.finish(pod, s, now)
		return now // it may be gone already
	}
	p.report(s, now, false)
	if !p.probesStopped {
		p.w.opts.Prober.StopLivenessAndStartup(p.uid)
		p.probesStopped = true
	}
	p.stopAll(pod, s.found.Containers, p.endBy)
	return p.proceed(ctx, s, now)
}

// finish reports the end of the pod, after which its status does not change any more. A pod that
// had ended before, and that the runtime does not have, is not reported again.
func (p *worker) finish(pod *v1.Pod, s *observation, now time.Time) {
	p.w.opts.Prober.RemovePod(p.uid)
	// A resize of a pod that has ended waits for nothing.
	p.w.opts.Status.ClearPodResizePendingCondition(p.uid)
	p.w.opts.Status.ClearPodResizeInProgressCondition(p.uid)
	if !p.orphan && (s.known || !podstatus.IsTerminal(s.old.Phase)) {
		p.report(s, now, true)
	}
	// Only now: a terminal phase that was reported earlier, as of an evicted pod, would be sent
	// with containers that still run.
	p.enter(stopped)
	if !p.orphan {
		if err := p.w.opts.Status.TerminatePod(pod); err != nil {
			p.log.Error("reporting the termination of the pod failed", "err", err)
		}
	}
	p.enter(finished)
}

// removeVolumes deletes what a pod that is finished has written to its volumes, and reports
// whether that is done. Logs and records stay until the pod is gone.
func (p *worker) removeVolumes(ctx context.Context) (done bool) {
	remover, can := p.w.opts.Runtime.(runtime.VolumeRemover)
	if !can || p.volumesGone {
		return true
	}
	if err := remover.RemoveVolumes(ctx, p.uid); err != nil {
		if ctx.Err() == nil {
			p.log.Error("removing the volumes of a terminated pod failed, will retry", "err", err)
		}
		return false
	}
	p.volumesGone = true
	return true
}

// remove deletes the remains of a finished and removed pod.
func (p *worker) remove(ctx context.Context, now time.Time) (next time.Time, over bool) {
	if err := p.w.opts.Runtime.RemovePod(ctx, p.uid); err != nil {
		if ctx.Err() == nil {
			p.log.Error("removing the pod from the runtime failed, will retry", "err", err)
		}
		return now.Add(startRetry), false
	}
	p.w.forget(p)
	return time.Time{}, true
}

// stopAll has every container of the pod end by a time, sidecars after those they serve.
func (p *worker) stopAll(pod *v1.Pod, containers []runtime.Container, by time.Time) {
	for _, c := range allAlive(containers) {
		p.stop(pod, c.Name, c.ID, by, true, "Stopping container "+c.Name)
	}
}

// stop has a container end by a time. A stop that is under way can only be hastened.
func (p *worker) stop(pod *v1.Pod, name, id string, by time.Time, ordered bool, message string) {
	s, begun := p.stops[id]
	if !begun {
		p.event(pod, name, v1.EventTypeNormal, eventKilling, message)
	}
	s.name, s.by = name, instant.Earlier(s.by, by)
	s.ordered = s.ordered || ordered
	p.stops[id] = s
}

// proceed takes the next steps of the stops that are under way.
func (p *worker) proceed(ctx context.Context, s *observation, now time.Time) (next time.Time) {
	steps, next := nextSteps(s.pod, allAlive(s.found.Containers), p.stops, now)
	for _, todo := range steps {
		id, name := todo.container.ID, todo.container.Name
		stop := p.stops[id]
		switch todo.kind {
		case runHook:
			stop.hook = hookRuns
			spec := podstatus.FindContainer(s.pod, name)
			p.runHook(ctx, s.pod, hookKey{id: id}, &hookCall{container: spec, handler: spec.Lifecycle.PreStop})
		case cancelHook:
			stop.hook = hookOver
			p.hookCanceled(hookKey{id: id}, errGraceOver)
			p.cancels[hookKey{id: id}]()
			p.event(s.pod, name, v1.EventTypeWarning, eventPreStop, "PreStopHook failed")
		case stopNow:
			err := p.w.opts.Runtime.StopContainer(ctx, id, todo.grace)
			if err != nil && !errors.Is(err, runtime.ErrNotFound) {
				p.failedStop(ctx, s.pod, name, err)
				next = instant.Earlier(next, now.Add(lookRetry))
				break
			}
			stop.asked = now.Add(todo.grace)
		}
		p.stops[id] = stop
	}
	return next
}

func (p *worker) failedStop(ctx context.Context, pod *v1.Pod, name string, err error) {
	if ctx.Err() != nil {
		return
	}
	p.log.Error("stop container failed, will retry", "container", name, "err", err)
	p.event(pod, name, v1.EventTypeWarning, eventFailedKill, "error killing pod: "+err.Error())
}

// tidy drops the state of ended containers that is not needed any more, and ends their hooks.
func (p *worker) tidy(containers []runtime.Container) {
	listed, running := map[string]bool{}, map[string]bool{}
	for i := range containers {
		listed[containers[i].ID] = true
		running[containers[i].ID] = alive(&containers[i])
	}
	for id := range p.stops {
		if !running[id] {
			delete(p.stops, id)
		}
	}
	for key, cancel := range p.cancels {
		if !running[key.id] {
			p.hookCanceled(key, errContainerEnded)
			cancel()
		}
	}
	unlisted := func(id string, _ bool) bool { return !listed[id] }
	maps.DeleteFunc(p.observed, unlisted)
	maps.DeleteFunc(p.restarting, unlisted)
	maps.DeleteFunc(p.actuated, func(id string, _ v1.ResourceRequirements) bool { return !listed[id] })
	maps.DeleteFunc(p.ends, func(id string, _ time.Time) bool { return !listed[id] })
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	maps.DeleteFunc(p.inbox.unhealthy, func(id string, _ runtime.ProbeKind) bool { return !running[id] })
	maps.DeleteFunc(p.inbox.restarts, func(id string, _ string) bool { return !running[id] })
}

// A container that is to end goes through three steps, all within one grace:
//
//	preStop hook ──► its turn (sidecars wait for those they serve) ──► StopContainer
//
// nextSteps decides which step is due. It is a function of data, so that the order of ends
// can be tested without a runtime.

// stopping is how far the stop of one container has come.
type stopping struct {
	name    string
	by      time.Time // the end of its grace
	ordered bool      // a sidecar waits for its turn
	hook    hookState
	asked   time.Time // the end that the runtime was asked for; zero if it was not

	postStartFailed bool // its postStart hook has failed, so that it never counted as running
}

type hookState int

const (
	hookDue hookState = iota // not run yet, if the container has one
	hookRuns
	hookOver
)

// step is what to do for a container that is to end.
type step struct {
	kind      stepKind
	container runtime.Container
	grace     time.Duration // for a stop
}

type stepKind string

const (
	runHook    stepKind = "hook"
	cancelHook stepKind = "cancel"
	stopNow    stepKind = "stop"
)

// nextSteps returns the steps that are due, and the latest time for the next look. Containers are
// the containers that could run; containers without an entry in stops are not touched.
func nextSteps(pod *v1.Pod, containers []runtime.Container, stops map[string]stopping, now time.Time) (steps []step, wake time.Time) {
	for _, c := range containers {
		s, wanted := stops[c.ID]
		if !wanted {
			continue
		}
		inTime := now.Before(s.by)
		if inTime && s.asked.IsZero() {
			switch {
			case s.hook == hookDue && hasPreStop(pod, c.Name):
				steps = append(steps, step{kind: runHook, container: c})
				wake = instant.Earlier(wake, s.by)
				continue
			case s.hook == hookRuns, s.ordered && mustWait(pod, c.Name, containers):
				wake = instant.Earlier(wake, s.by)
				continue
			}
		}
		if s.hook == hookRuns {
			steps = append(steps, step{kind: cancelHook, container: c})
		}
		end := s.by
		if least := now.Add(minimumStop); end.Before(least) {
			end = least
		}
		if s.asked.IsZero() || end.Before(s.asked) {
			steps = append(steps, step{kind: stopNow, container: c, grace: end.Sub(now)})
		}
	}
	return steps, wake
}

// mustWait reports whether a sidecar still serves a container that could run: a regular
// one, or a sidecar that was started after it.
func mustWait(pod *v1.Pod, name string, containers []runtime.Container) bool {
	own := sidecarIndex(pod, name)
	if own < 0 {
		return false
	}
	for i := range containers {
		if isRegular(pod, containers[i].Name) || sidecarIndex(pod, containers[i].Name) > own {
			return true
		}
	}
	return false
}

func hasPreStop(pod *v1.Pod, name string) bool {
	c := podstatus.FindContainer(pod, name)
	return c != nil && c.Lifecycle != nil && c.Lifecycle.PreStop != nil
}
