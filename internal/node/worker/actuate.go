package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/statusd/statusd/internal/instant"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// resize checks whether the spec requests other resources than the pod's allocated ones, and
// carries out a granted resize. resize returns the time of the next check.
func (p *worker) resize(ctx context.Context, in *input, s *observation, now time.Time) (next time.Time) {
	if p.asksForMore(in) {
		p.w.decideResizes()
		p.useAllocation(in, s)
		next = now.Add(p.w.opts.Resync)
	}
	return instant.Earlier(next, p.actuate(ctx, in, s, now))
}

// asksForMore notes whether the pod asks for a resize.
func (p *worker) asksForMore(in *input) bool {
	wants := !equality.Semantic.DeepEqual(podstatus.AllocationOf(in.desired), podstatus.AllocationOf(in.pod))
	if !wants {
		p.w.opts.Status.ClearPodResizePendingCondition(p.uid)
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.inbox.revision == in.revision { // else it was changed meanwhile, and the next turn looks again
		p.inbox.resizing = wants
	}
	return wants
}

// actuate gives running containers the resources that they were allocated.
func (p *worker) actuate(ctx context.Context, in *input, s *observation, now time.Time) (next time.Time) {
	resizing := hasCondition(p.w.opts.Status.GetPodResizeConditions(p.uid), v1.PodResizeInProgress)
	done := true
	for _, c := range allAlive(s.found.Containers) {
		spec := podstatus.FindContainer(s.pod, c.Name)
		if spec == nil {
			continue
		}
		has, known := p.actuated[c.ID]
		if !known && !resizing { // adopted, and no resize was under way
			p.actuated[c.ID] = *spec.Resources.DeepCopy()
			continue
		}
		if known && equality.Semantic.DeepEqual(has, spec.Resources) {
			continue
		}
		if known && needsRestart(spec, &has) {
			done = false
			p.restarting[c.ID] = true
			p.stop(s.pod, c.Name, c.ID, now.Add(podGrace(s.pod)), false, "Container "+c.Name+" resize requires restart")
			continue
		}
		if p.resizeAfter.After(now) || !p.apply(ctx, s.pod, &c, spec) {
			done = false
			if !p.resizeAfter.After(now) {
				p.resizeAfter = now.Add(startRetry)
			}
			next = p.resizeAfter
		}
	}
	if done && resizing && p.stillAllocated(in.allocated) {
		if generation, cleared := p.w.opts.Status.ClearPodResizeInProgressCondition(p.uid); cleared {
			p.event(s.pod, "", v1.EventTypeNormal, "ResizeCompleted", describeResize("Pod resize completed", s.pod, generation, ""))
		}
	}
	return next
}

// stillAllocated reports whether nothing else was granted to the pod since the turn began.
func (p *worker) stillAllocated(allocated *podstatus.Allocation) bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.inbox.allocated == allocated
}

// apply changes the resources of a running container, if the runtime has any to change.
func (p *worker) apply(ctx context.Context, pod *v1.Pod, c *runtime.Container, spec *v1.Container) bool {
	if resizer, can := p.w.opts.Runtime.(runtime.Resizer); can {
		if err := resizer.ResizeContainer(ctx, c.ID, spec.Resources); err != nil {
			if ctx.Err() == nil {
				p.failedResize(pod, c.Name, err)
			}
			return false
		}
	}
	p.actuated[c.ID] = *spec.Resources.DeepCopy()
	return true
}

func (p *worker) failedResize(pod *v1.Pod, container string, err error) {
	p.log.Error("resize container failed, will retry", "container", container, "err", err)
	message := "failed to resize container " + container + ": " + err.Error()
	generation, changed := p.w.opts.Status.SetPodResizeInProgressCondition(p.uid, v1.PodReasonError, message, pod.Generation)
	if changed {
		p.event(pod, "", v1.EventTypeWarning, "ResizeError", describeResize("Pod resize error", pod, generation, message))
	}
}

// needsRestart reports whether the container asks to be restarted for this resize.
func needsRestart(spec *v1.Container, has *v1.ResourceRequirements) bool {
	for _, policy := range spec.ResizePolicy {
		if policy.RestartPolicy != v1.RestartContainer {
			continue
		}
		name := policy.ResourceName
		if !equality.Semantic.DeepEqual(has.Requests[name], spec.Resources.Requests[name]) ||
			!equality.Semantic.DeepEqual(has.Limits[name], spec.Resources.Limits[name]) {
			return true
		}
	}
	return false
}

func hasCondition(conditions []v1.PodCondition, kind v1.PodConditionType) bool {
	return podstatus.FindCondition(conditions, kind) != nil
}
