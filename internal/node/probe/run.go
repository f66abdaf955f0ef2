package probe

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// pod is a pod that is probed.
type pod struct {
	manifest *v1.Pod
	ip       string
	// ending means that its containers are being stopped.
	ending bool
	// runs are the running containers that have probes, by name.
	runs map[string]*run
}

// run is one run of a container, from its start to its end.
type run struct {
	container   *v1.Container
	containerID string
	startedAt   time.Time
	results     results
	tasks       []*task
}

// task is one probe of one run.
type task struct {
	pod  *pod
	run  *run
	kind runtime.ProbeKind
	spec *v1.Probe
	schedule
	// spread is the delay of the first probe, see [Options.Spread].
	spread time.Duration

	// seen is what the probes have found so far, for [Prober.Results].
	seen seen

	// cancel is nil until Run has taken the task up.
	cancel context.CancelFunc
	ended  bool
}

// observe ends the runs that a status of the pod no longer shows, and begins the runs that the
// status shows for the first time. The caller holds the lock.
func (p *Prober) observe(known *pod, status *v1.PodStatus) {
	known.ip = cmp.Or(status.PodIP, status.HostIP) // a runtime whose pods have no addresses serves at the node's address
	for i := range known.manifest.Spec.Containers {
		p.follow(known, &known.manifest.Spec.Containers[i], status.ContainerStatuses)
	}
	for i := range known.manifest.Spec.InitContainers {
		if init := &known.manifest.Spec.InitContainers[i]; podstatus.IsSidecar(init) {
			p.follow(known, init, status.InitContainerStatuses)
		}
	}
}

func (p *Prober) follow(known *pod, spec *v1.Container, statuses []v1.ContainerStatus) {
	c := running(statuses, spec.Name)
	if r := known.runs[spec.Name]; r != nil {
		if c != nil && c.ContainerID == r.containerID {
			return
		}
		r.end()
		delete(known.runs, spec.Name)
	}
	if c == nil || spec.StartupProbe == nil && spec.ReadinessProbe == nil && spec.LivenessProbe == nil {
		return
	}
	r := &run{
		container:   spec,
		containerID: c.ContainerID,
		startedAt:   c.State.Running.StartedAt.Time,
		results:     firstResults(spec, c),
	}
	known.runs[spec.Name] = r
	spread := p.opts.Spread
	if !r.startedAt.Before(p.born) {
		spread = func(time.Duration) time.Duration { return 0 }
	}
	p.begin(known, r, spread)
}

// running returns the status of a running container, or nil.
func running(statuses []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range statuses {
		if c := &statuses[i]; c.Name == name && c.State.Running != nil && c.ContainerID != "" {
			return c
		}
	}
	return nil
}

// begin hands the probes of a run to Run: startup until the container has started, the
// others from then on (Q6). The caller holds the lock.
func (p *Prober) begin(known *pod, r *run, spread func(period time.Duration) time.Duration) {
	add := func(kind runtime.ProbeKind, spec *v1.Probe) {
		if spec == nil || known.ending && kind != runtime.ReadinessProbe {
			return
		}
		t := &task{pod: known, run: r, kind: kind, spec: spec, schedule: scheduleOf(spec)}
		t.spread = spread(t.period)
		t.seen.told = r.results.of(kind)
		r.tasks = append(r.tasks, t)
		p.due = append(p.due, t)
	}
	if r.results.started() {
		add(runtime.ReadinessProbe, r.container.ReadinessProbe)
		add(runtime.LivenessProbe, r.container.LivenessProbe)
	} else {
		add(runtime.StartupProbe, r.container.StartupProbe)
	}
	wake.Up(p.wake)
}

// stopDangerous ends the probes whose failure would stop a container.
func (known *pod) stopDangerous() {
	known.ending = true
	for _, r := range known.runs {
		for _, t := range r.tasks {
			if t.kind != runtime.ReadinessProbe {
				t.end()
			}
		}
	}
}

func (r *run) end() {
	for _, t := range r.tasks {
		t.end()
	}
}

// end stops the task. Results that arrive later are dropped.
func (t *task) end() {
	t.ended = true
	if t.cancel != nil {
		t.cancel()
	}
}
