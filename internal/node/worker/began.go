package worker

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// runs reports whether the runtime shows a container as running. Most runtimes do as soon as a
// start has returned; where an image is pulled or a job is queued first, it takes longer.
func (p *worker) runs(ctx context.Context, id string) bool {
	found, err := p.w.opts.Runtime.Pod(ctx, p.uid)
	return err == nil && !slices.ContainsFunc(found.Containers, func(c runtime.Container) bool {
		return c.ID == id && c.State == runtime.Created
	})
}

// noteBegins follows created containers that did not run yet. Containers that run now are started:
// a postStart hook can run from now on.
func (p *worker) noteBegins(ctx context.Context, pod *v1.Pod, containers []runtime.Container) {
	listed := map[string]bool{}
	for i := range containers {
		c := &containers[i]
		listed[c.ID] = true
		switch {
		case c.State == runtime.Created:
			p.created[c.ID] = true
		case !p.created[c.ID]:
		case c.State != runtime.Running:
			delete(p.created, c.ID)
		case p.runningPostStart == "":
			delete(p.created, c.ID)
			if spec := specOf(pod, c.Name); spec != nil {
				p.began(ctx, pod, spec, c.ID)
			}
		}
	}
	for id := range p.created {
		if !listed[id] {
			delete(p.created, id)
		}
	}
}

// began reports that a container runs, and runs its postStart hook.
func (p *worker) began(ctx context.Context, pod *v1.Pod, c *v1.Container, id string) {
	p.event(pod, c.Name, v1.EventTypeNormal, eventStarted, "Container started")
	if c.Lifecycle != nil && c.Lifecycle.PostStart != nil {
		p.runningPostStart = id
		p.runHook(ctx, pod, hookKey{id: id, post: true}, &hookCall{container: c, handler: c.Lifecycle.PostStart})
	}
}
