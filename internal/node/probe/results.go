package probe

import (
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// results are the probe results of one run of a container. Started and Ready depend on them alone,
// so that a container cannot be ready without having started.
type results struct {
	// asksStartup and asksReadiness report for which of them there is a probe.
	asksStartup, asksReadiness bool
	startup, readiness         result
}

// firstResults returns the results of a newly seen run. The reported values of the same container
// ID hold until a probe decides otherwise; the status must carry values of this ID only. Without
// reported values, the run has not started and is not ready (Q1, Q2).
func firstResults(spec *v1.Container, reported *v1.ContainerStatus) results {
	r := results{asksStartup: spec.StartupProbe != nil, asksReadiness: spec.ReadinessProbe != nil}
	if reported.Started != nil && *reported.Started {
		r.startup = success
		if reported.Ready {
			r.readiness = success
		}
	}
	return r
}

// with returns the results after a probe of a kind has been decided.
func (r results) with(kind runtime.ProbeKind, decided result) results {
	switch kind {
	case runtime.StartupProbe:
		r.startup = decided
	case runtime.ReadinessProbe:
		r.readiness = decided
	}
	return r
}

// of returns the result of the probes of a kind.
func (r results) of(kind runtime.ProbeKind) result {
	switch kind {
	case runtime.StartupProbe:
		return r.startup
	case runtime.ReadinessProbe:
		return r.readiness
	}
	return unknown
}

// started is Q9 for a running container.
func (r results) started() bool { return !r.asksStartup || r.startup == success }

// ready is Q10 for a running container, and Q11: not before it has started.
func (r results) ready() bool {
	return r.started() && (!r.asksReadiness || r.readiness == success)
}

// fill sets Started and Ready of every container of the status. The function known returns
// the results of a running container that is not an ordinary init container.
func fill(pod *v1.Pod, status *v1.PodStatus, known func(*v1.Container, *v1.ContainerStatus) results) {
	for i := range status.ContainerStatuses {
		if spec := named(pod.Spec.Containers, status.ContainerStatuses[i].Name); spec != nil {
			fillProbed(spec, &status.ContainerStatuses[i], known)
		}
	}
	for i := range status.InitContainerStatuses {
		c := &status.InitContainerStatuses[i]
		spec := named(pod.Spec.InitContainers, c.Name)
		switch {
		case spec == nil: // not in the spec: left as it is
		case podstatus.IsSidecar(spec):
			fillProbed(spec, c, known)
		default: // Q12
			running := c.State.Running != nil
			c.Started = &running
			c.Ready = c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		}
	}
}

func fillProbed(spec *v1.Container, c *v1.ContainerStatus, known func(*v1.Container, *v1.ContainerStatus) results) {
	var started, ready bool
	if c.State.Running != nil {
		r := known(spec, c)
		started, ready = r.started(), r.ready()
	}
	c.Started, c.Ready = &started, ready
}

func named(containers []v1.Container, name string) *v1.Container {
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	return nil
}
