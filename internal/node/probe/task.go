package probe

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/runtime"
)

// Reasons of events, as the kubelet has them.
const (
	reasonUnhealthy = "Unhealthy"
	reasonWarning   = "ProbeWarning"
)

// perform carries a probe out, period by period, until the run ends or nothing more is to
// be learned from it. A probe that takes longer than its period is followed at once by the next.
func (p *Prober) perform(ctx context.Context, t *task) {
	first := t.schedule.first(t.run.startedAt, time.Now())
	first = max(first, t.spread)
	p.scheduled(t, time.Now().Add(first))
	if !backoff.Sleep(ctx, first) {
		return
	}
	ticker := time.NewTicker(t.period)
	defer ticker.Stop()
	var so streak
	for ctx.Err() == nil { // a run may end in the moment in which its next probe is due
		begin := time.Now()
		found := p.ask(ctx, t)
		if ctx.Err() != nil {
			return
		}
		took := time.Since(begin)
		p.count.probed(t.kind, found.result, took)
		p.countOfPod(t, found.result, took)
		p.record(t, found)
		var decided result
		so, decided = so.next(found.result, t.schedule)
		p.noteAnswer(t, so, decided, found, time.Now())
		if decided != unknown && !p.settle(t, decided, found.message) {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// ask puts the probe's question to the container once.
func (p *Prober) ask(ctx context.Context, t *task) answer {
	p.mu.Lock()
	ip := t.pod.ip
	p.mu.Unlock()
	return p.check(ctx, question{
		handler:     &t.spec.ProbeHandler,
		container:   t.run.container,
		containerID: t.run.containerID,
		podIP:       ip,
		timeout:     t.timeout,
	})
}

// record makes an event of a probe that did not simply succeed.
func (p *Prober) record(t *task, found answer) {
	var reason, message string
	switch {
	case found.result == unknown:
		reason, message = reasonUnhealthy, " probe errored and resulted in unknown state: "
	case found.result == failure:
		reason, message = reasonUnhealthy, " probe failed: "
	case found.warning:
		reason, message = reasonWarning, " probe warning: "
	default:
		return
	}
	manifest := p.manifestOf(t)
	p.opts.Recorder.Event(manifest, t.run.container.Name, v1.EventTypeWarning, reason, title(t.kind)+message+found.message)
	p.opts.Logger.Debug("probe did not succeed", "pod", manifest.Namespace+"/"+manifest.Name, "uid", manifest.UID,
		"container", t.run.container.Name, "probe", t.kind, "result", found.result, "message", found.message)
}

func (p *Prober) manifestOf(t *task) *v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return t.pod.manifest
}

// settle takes what a series of probes has shown as the result of the run, and reports
// it. settle reports whether to probe on: a run is not probed again for startup once
// that is decided, nor for anything that will stop it (Q8).
func (p *Prober) settle(t *task, decided result, message string) (probeOn bool) {
	p.mu.Lock()
	if t.ended {
		p.mu.Unlock()
		return false
	}
	before := t.run.results
	after := before.with(t.kind, decided)
	t.run.results = after
	uid := t.pod.manifest.UID
	p.mu.Unlock()

	p.tell(uid, t.run.containerID, before, after)
	if decided == failure && t.kind != runtime.ReadinessProbe {
		p.opts.Unhealthy(Failure{
			Pod: uid, Container: t.run.container.Name, ContainerID: t.run.containerID,
			Kind: t.kind, Message: message, Grace: t.spec.TerminationGracePeriodSeconds,
		})
		return false
	}
	if t.kind == runtime.StartupProbe {
		p.started(t)
		return false
	}
	return true
}

// started begins the probes that wait for the start of a container. It is called only after the
// start was reported, so that no container is reported ready before it is reported started.
func (p *Prober) started(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !t.ended {
		p.begin(t.pod, t.run, func(time.Duration) time.Duration { return 0 })
	}
}

// tell passes on the changes of a run. Started is passed on before ready, and a started container
// never becomes unstarted again.
func (p *Prober) tell(uid types.UID, containerID string, before, after results) {
	sync := before.started() != after.started() // what waits for a sidecar can start now
	set := func(was, is bool, to func(types.UID, string, bool) error) {
		if was == is {
			return
		}
		if err := to(uid, containerID, is); err != nil {
			// The worker has not reported this container yet, or no longer does: its next status, which is
			// requested below, has the value too.
			sync = true
			p.opts.Logger.Debug("probe result not stored", "uid", uid, "container", containerID, "err", err)
		}
	}
	set(before.started(), after.started(), p.opts.Status.SetContainerStartup)
	set(before.ready(), after.ready(), p.opts.Status.SetContainerReadiness)
	if sync {
		p.opts.Sync(uid)
	}
}

// title is the kind as the kubelet's events spell it.
func title(kind runtime.ProbeKind) string {
	switch kind {
	case runtime.StartupProbe:
		return "Startup"
	case runtime.ReadinessProbe:
		return "Readiness"
	}
	return "Liveness"
}
