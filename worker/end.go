package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// end is the turn of a pod that must not run any more: stop what runs, within the grace
// that is left, and then say how it ended.
func (p *worker) end(ctx context.Context, pod *v1.Pod, s *sight, now time.Time) (next time.Time) {
	p.endBy = earliest(p.endBy, now.Add(podGrace(pod)))
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

// finish says how the pod ended, and that nothing of it will change any more. A pod that
// has ended before and of which the runtime has nothing has been described already.
func (p *worker) finish(pod *v1.Pod, s *sight, now time.Time) {
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
			p.log.Error("cannot report the end of the pod", "err", err)
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
			p.log.Error("cannot remove the volumes of a pod that has ended, will retry", "err", err)
		}
		return false
	}
	p.volumesGone = true
	return true
}

// remove deletes what is left of a pod that is finished and gone.
func (p *worker) remove(ctx context.Context, now time.Time) (next time.Time, over bool) {
	if err := p.w.opts.Runtime.RemovePod(ctx, p.uid); err != nil {
		if ctx.Err() == nil {
			p.log.Error("cannot remove the pod from the runtime", "err", err)
		}
		return now.Add(startRetry), false
	}
	p.w.forget(p)
	return time.Time{}, true
}
