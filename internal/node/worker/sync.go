package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/instant"
	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// sync is the turn of a pod that should run: report its status, then carry out the plan.
func (p *worker) sync(ctx context.Context, in *input, s *observation, now time.Time) (next time.Time) {
	if !p.admitted {
		if in.blocked != "" {
			if p.waitsFor != in.blocked {
				p.waitsFor = in.blocked
				p.log.Info("pod waits: a static pod of the same name has containers that could run", "waits-for", in.blocked)
			}
			return time.Time{} // the end of the other one wakes this worker
		}
		r, wait := p.w.admit(p, s.pod)
		switch {
		case r != nil:
			if due := p.braked(s.pod, r, now); due.After(now) {
				return due
			}
			p.reject(s.pod, r)
			return now
		case wait:
			return now.Add(p.w.opts.Resync) // unless the end of one of them wakes this worker before
		}
		p.admitted = true
		p.useAllocation(in, s)
	}
	p.record(s.pod)
	resized := p.resize(ctx, in, s, now)
	if u, ok := p.w.opts.Runtime.(runtime.PodUpdater); ok && s.known {
		u.UpdatePod(s.pod)
	}
	reported := p.report(s, now, false)
	if podstatus.IsTerminal(reported.Phase) {
		return now // to end its remaining containers
	}
	p.w.opts.Prober.AddPod(s.pod)
	if isRestartingAll(&reported) {
		return p.restartAll(ctx, s, now)
	}
	next = p.carryOut(ctx, s, makePlan(p.planInput(in, s, &reported, now)), now)
	start := reported.StartTime
	if start.IsZero() {
		start = &metav1.Time{Time: now}
	}
	return instant.Earlier(instant.Earlier(next, resized), podstatus.Deadline(s.pod, start))
}

// useAllocation updates the pod of the turn with its current allocation.
func (p *worker) useAllocation(in *input, s *observation) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	in.allocated = p.inbox.allocated
	in.pod = withAllocation(in.desired, in.allocated)
	s.pod = in.pod
}

// reject ends a rejected pod before any of its containers is started. The pod is stopped before it
// is reported, because otherwise Safety withholds the Failed phase.
func (p *worker) reject(pod *v1.Pod, r *fit.Rejection) {
	p.enter(stopped)
	p.event(pod, "", v1.EventTypeWarning, r.Reason, r.Message)
	p.w.opts.Observer.Admitted(pod, r, time.Now())
	p.log.Info("pod rejected", "reason", r.Reason, "message", r.Message)
	_, err := p.w.opts.Status.SetPodStatus(pod, v1.PodStatus{
		QOSClass: podstatus.QOSClass(pod),
		Phase:    v1.PodFailed,
		Reason:   r.Reason,
		Message:  "Pod was rejected: " + r.Message,
	})
	if err != nil {
		p.log.Error("status rejected", "err", err)
	}
}

func (p *worker) planInput(in *input, s *observation, reported *v1.PodStatus, now time.Time) *planInput {
	return &planInput{
		pod:        s.pod,
		containers: p.present(s.found.Containers),
		minAttempt: p.minAttempt,
		status:     reported,
		unhealthy:  in.unhealthy,
		restarts:   in.restarts,
		restarting: p.restarting,
		backOffs:   p.backOffs,
		retries:    p.dueRetries(s.pod),
		ends:       p.ends,
		now:        now,
	}
}

// carryOut does what the plan says. While a postStart hook runs nothing more is started.
func (p *worker) carryOut(ctx context.Context, s *observation, todo plan, now time.Time) (next time.Time) {
	p.dues = todo.dues
	if todo.end {
		p.stopAll(s.pod, s.found.Containers, now.Add(podGrace(s.pod)))
		return p.proceed(ctx, s, now)
	}
	for _, c := range todo.stops {
		if c.runsAgain(s.pod) {
			p.restarting[c.id] = true
		}
		p.stop(s.pod, c.container.Name, c.id, now.Add(probeGrace(s.pod, c.container, c.probe)), false, killMessage(s.pod, &c))
	}
	next = instant.Earlier(todo.wake, p.proceed(ctx, s, now))
	if p.explain(s.pod, todo.waits) {
		next = now
	}
	if len(todo.starts) == 0 || p.runningPostStart != "" {
		return next
	}
	starts := p.supported(s, todo.starts, now)
	if len(starts) == 0 {
		return now // to report why
	}
	if wait, ok := p.ensureSandbox(ctx, s); !ok {
		return now.Add(wait)
	}
	for i, start := range starts {
		outcome := p.start(ctx, s, start, now)
		if outcome == startPulls && i == 0 && len(starts) == len(todo.starts) {
			return next // nothing has changed: the end of the pull wakes this worker
		}
		if outcome != startDone || p.runningPostStart != "" {
			break
		}
	}
	return now
}

// ensureSandbox starts the sandbox of the pod unless it has one. Unless ok, the worker looks again after the wait: containers are started in the turn
// after that of the sandbox, which reports the sandbox and knows which containers ran in an earlier one. A sandbox that another process has started may be
// from before a restart of the machine.
func (p *worker) ensureSandbox(ctx context.Context, s *observation) (wait time.Duration, ok bool) {
	present := s.known && !s.found.NoPlace
	if present && p.hasSandbox {
		p.sandboxes = 0
		return 0, true
	}
	if !p.startPod(ctx, s.pod) {
		p.sandboxFailures++
		return sandboxRetries.Wait(p.sandboxFailures, 0), false
	}
	p.hasSandbox, p.sandboxFailures = true, 0
	if present {
		return 0, true
	}
	p.sandboxes++
	if p.sandboxes > 1 { // the last one has ended before a container could start
		wait = sandboxRetries.Wait(p.sandboxes-1, 0)
	}
	return wait, false
}

// killMessage is the message of the event that a container is stopped.
func killMessage(pod *v1.Pod, c *kill) string {
	kind := "Container"
	if !isRegular(pod, c.container.Name) {
		kind = "Init container"
	}
	message := fmt.Sprintf("%s %s definition changed", kind, c.container.Name)
	switch {
	case c.probe != "":
		message = fmt.Sprintf("%s %s failed %s probe", kind, c.container.Name, c.probe)
	case c.asked != "":
		message = fmt.Sprintf("%s %s is stopped: %s", kind, c.container.Name, c.asked)
	}
	if c.runsAgain(pod) {
		message += ", will be restarted"
	}
	return message
}

// explain notes why containers wait, and reports whether that is news.
func (p *worker) explain(pod *v1.Pod, waits map[string]v1.ContainerStateWaiting) (news bool) {
	for name, why := range waits {
		if p.waiting[name] == why {
			continue
		}
		p.waiting[name] = why
		news = true
		p.event(pod, name, v1.EventTypeWarning, eventBackOff,
			fmt.Sprintf("Back-off restarting failed container %s in pod %s", name, fullName(pod)))
	}
	return news
}

func (p *worker) startPod(ctx context.Context, pod *v1.Pod) bool {
	err := p.w.opts.Runtime.StartPod(ctx, pod)
	switch {
	case err == nil || ctx.Err() != nil:
	case p.sandboxFailures == 0 && isAuthorizerBehind(err):
		p.log.Debug("the API server does not know yet that the pod is on this node, will retry", "err", err)
	default:
		p.log.Error("create pod sandbox failed, will retry", "err", err)
		p.recordSandboxFailure(pod, err)
	}
	return err == nil
}

// isAuthorizerBehind reports whether the API server has refused the objects of the pod's volumes. isAuthorizerBehind does so for a moment after a
// pod was scheduled, until its authorizer has seen the pod, so that the first refusal says nothing.
func isAuthorizerBehind(err error) bool {
	volumes := runtime.MountErrors(err)
	for _, volume := range volumes {
		if !apierrors.IsForbidden(volume.Err) {
			return false
		}
	}
	return len(volumes) > 0
}

// recordSandboxFailure records which volumes the pod waits for, or what else keeps it waiting.
func (p *worker) recordSandboxFailure(pod *v1.Pod, err error) {
	volumes := runtime.MountErrors(err)
	for _, volume := range volumes {
		p.event(pod, "", v1.EventTypeWarning, runtime.EventFailedMount, volume.Error())
	}
	if len(volumes) == 0 {
		p.event(pod, "", v1.EventTypeWarning, eventFailedSandbox, "Failed to create pod sandbox: "+err.Error())
	}
}

// startContainer starts one container. The start is abandoned when the pod must end meanwhile, so that a deleted pod waits for no long pull.
func (p *worker) startContainer(ctx context.Context, pod *v1.Pod, todo start) (id string, abandoned bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.setAbandon(cancel)
	defer p.setAbandon(nil)
	id, err = p.w.opts.Runtime.StartContainer(ctx, pod, todo.container, todo.attempt)
	return id, ctx.Err() != nil, err
}

func (p *worker) setAbandon(abandon context.CancelFunc) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.inbox.abandon = abandon
	p.inbox.abandonStart()
}

// abandonStart ends the start that is under way, if any, when the pod must end. The caller holds Workers.mu.
func (m *inbox) abandonStart() {
	if m.abandon != nil && (m.gone || m.evicted != nil || m.pod.DeletionTimestamp != nil || podstatus.IsTerminal(m.pod.Status.Phase)) {
		m.abandon()
	}
}

// outcome is what became of a start.
type outcome int

const (
	startDone      outcome = iota // also if it has failed
	startAbandoned                // the pod must end
	startPulls                    // the image is pulled: later containers wait, so that the order of starts is that of the spec
)

// start starts one container, and its postStart hook.
func (p *worker) start(ctx context.Context, s *observation, todo start, now time.Time) outcome {
	name := todo.container.Name
	id, abandoned, err := p.startContainer(ctx, s.pod, todo)
	if errors.Is(err, runtime.ErrPulling) {
		if p.pulling[name].IsZero() {
			p.pulling[name] = now
		}
		return startPulls
	}
	delete(p.pulling, name)
	if id != "" { // also if it did not start
		p.event(s.pod, name, v1.EventTypeNormal, eventCreated, "Container created")
	}
	if err == nil || !abandoned {
		p.w.count.started(err)
	}
	if err != nil {
		if abandoned {
			return startAbandoned
		}
		p.failedStart(s.pod, todo, id, err, now)
		return startDone
	}
	delete(p.waiting, name)
	delete(p.retries, name)
	p.backOffs[name] = todo.backOff
	p.actuated[id] = *todo.container.Resources.DeepCopy()
	if p.runs(ctx, id) {
		p.began(ctx, s.pod, todo.container, id)
	} else {
		p.created[id] = true
	}
	if abandoned {
		return startAbandoned
	}
	return startDone
}

// failedStart records why a container did not start. If the runtime lists the attempt, it backs off
// like any ended container; otherwise the start is tried again after a pause.
func (p *worker) failedStart(pod *v1.Pod, todo start, id string, err error, now time.Time) {
	name, reason, message := todo.container.Name, runtime.WaitingRunError, err.Error()
	if failed, ok := errors.AsType[*runtime.StartError](err); ok {
		reason, message = failed.Reason, failed.Error()
	}
	p.log.Error("start container failed", "container", name, "attempt", todo.attempt, "err", err)
	p.event(pod, name, v1.EventTypeWarning, eventFailed, "Error: "+message)
	why := v1.ContainerStateWaiting{Reason: reason, Message: message}
	if id == "" {
		p.retryStart(todo.container, why, now)
		return
	}
	p.waiting[name] = why
	p.backOffs[name] = todo.backOff
}

// restartAll stops every container at once. When none is left, all that the runtime has
// of them is history, and the pod begins again with its first init container.
func (p *worker) restartAll(ctx context.Context, s *observation, now time.Time) (next time.Time) {
	left := p.present(s.found.Containers)
	if len(allAlive(left)) > 0 {
		for _, c := range allAlive(left) {
			p.stop(s.pod, c.Name, c.ID, now, false, "Stopping container "+c.Name+" because all containers restart")
		}
		return p.proceed(ctx, s, now)
	}
	for _, c := range left {
		p.minAttempt[c.Name] = max(p.minAttempt[c.Name], c.Attempt+1)
	}
	clear(p.waiting)
	return now
}
