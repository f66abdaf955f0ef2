package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

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
	s.by = earliest(s.by, by)
	s.ordered = s.ordered || ordered
	p.stops[id] = s
}

// proceed takes the next steps of the stops that are under way.
func (p *worker) proceed(ctx context.Context, s *sight, now time.Time) (next time.Time) {
	steps, next := halt(s.pod, allAlive(s.found.Containers), p.stops, now)
	for _, todo := range steps {
		id, name := todo.container.ID, todo.container.Name
		stop := p.stops[id]
		switch todo.kind {
		case runHook:
			stop.hook = hookRuns
			spec := podstatus.FindContainer(s.pod, name)
			p.runHook(ctx, hookKey{id: id}, &hookCall{container: spec, handler: spec.Lifecycle.PreStop})
		case cancelHook:
			stop.hook = hookOver
			p.cancels[hookKey{id: id}]()
		case stopNow:
			err := p.w.opts.Runtime.StopContainer(ctx, id, todo.grace)
			if err != nil && !errors.Is(err, runtime.ErrNotFound) {
				p.failedStop(ctx, s.pod, name, err)
				next = earliest(next, now.Add(lookRetry))
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
	p.log.Error("cannot stop a container", "container", name, "err", err)
	p.event(pod, name, v1.EventTypeWarning, eventFailedKill, "error killing pod: "+err.Error())
}

// runHook runs a hook beside the worker, which hears of its end by mail.
func (p *worker) runHook(ctx context.Context, key hookKey, call *hookCall) {
	call.pod, call.id = p.uid, key.id
	live := ctx
	ctx, cancel := context.WithCancel(ctx)
	p.cancels[key] = cancel
	p.hooks.Go(func() {
		defer cancel()
		err := p.w.run(ctx, call)
		if err != nil && live.Err() != nil {
			return // cut off by the end of this process, which says nothing about the container
		}
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		p.mail.ended = append(p.mail.ended, hookEnd{hookKey: key, container: call.container.Name, fellBack: call.fellBack, err: err})
		p.poke()
	})
}

// settle takes note of the hooks that have ended. A container whose postStart hook has
// failed is stopped.
func (p *worker) settle(pod *v1.Pod, ended []hookEnd, now time.Time) {
	for _, hook := range ended {
		delete(p.cancels, hook.hookKey)
		if hook.fellBack != "" {
			p.event(pod, hook.container, v1.EventTypeWarning, eventHTTPFallback,
				fmt.Sprintf("request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", hook.fellBack))
		}
		switch {
		case !hook.post:
			p.settlePreStop(pod, hook)
		case p.posting != hook.id: // abandoned
		case hook.err != nil:
			p.posting = ""
			p.waiting[hook.container] = v1.ContainerStateWaiting{Reason: reasonPostStartHook, Message: hook.err.Error()}
			p.event(pod, hook.container, v1.EventTypeWarning, eventPostStart, "PostStartHook failed")
			p.stop(pod, hook.container, hook.id, now.Add(podGrace(pod)), false, "FailedPostStartHook")
		default:
			p.posting = ""
		}
	}
}

func (p *worker) settlePreStop(pod *v1.Pod, hook hookEnd) {
	stop, begun := p.stops[hook.id]
	if !begun || stop.hook == hookOver {
		return // the container has ended, or the hook has taken too long
	}
	if hook.err != nil {
		p.log.Error("preStop hook failed", "container", hook.container, "err", hook.err)
		p.event(pod, hook.container, v1.EventTypeWarning, eventPreStop, "PreStopHook failed")
	}
	stop.hook = hookOver
	p.stops[hook.id] = stop
}

// abandonPostStart ends a postStart hook that a pod that ends has no use for.
func (p *worker) abandonPostStart() {
	if cancel, runs := p.cancels[hookKey{id: p.posting, post: true}]; runs {
		cancel()
	}
	p.posting = ""
}

// tidy forgets what is not needed any more about containers that have ended, and ends
// their hooks.
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
			cancel()
		}
	}
	unlisted := func(id string, _ bool) bool { return !listed[id] }
	maps.DeleteFunc(p.observed, unlisted)
	maps.DeleteFunc(p.reborn, unlisted)
	maps.DeleteFunc(p.actuated, func(id string, _ v1.ResourceRequirements) bool { return !listed[id] })
	maps.DeleteFunc(p.ends, func(id string, _ time.Time) bool { return !listed[id] })
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	maps.DeleteFunc(p.mail.unhealthy, func(id string, _ runtime.ProbeKind) bool { return !running[id] })
}
