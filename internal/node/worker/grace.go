package worker

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

const (
	// minimumGrace is what a pod is given to end when it is deleted with no grace at all.
	minimumGrace = time.Second
	// minimumStop is what a container is given between the signal and the kill, even if
	// its hook has used up the grace: few programs need to be killed, most need a moment.
	minimumStop = 2 * time.Second
)

// podGrace is how long the containers of a pod that ends may take.
func podGrace(pod *v1.Pod) time.Duration {
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		return max(minimumGrace, seconds(*pod.DeletionGracePeriodSeconds))
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return max(minimumGrace, seconds(*pod.Spec.TerminationGracePeriodSeconds))
	}
	return v1.DefaultTerminationGracePeriodSeconds * time.Second
}

// probeGrace is the grace period of a container that a probe has failed: the probe's, or else the
// pod's.
func probeGrace(pod *v1.Pod, container *v1.Container, probe runtime.ProbeKind) time.Duration {
	var spec *v1.Probe
	switch probe {
	case runtime.LivenessProbe:
		spec = container.LivenessProbe
	case runtime.StartupProbe:
		spec = container.StartupProbe
	}
	if pod.DeletionGracePeriodSeconds == nil && spec != nil && spec.TerminationGracePeriodSeconds != nil {
		return seconds(*spec.TerminationGracePeriodSeconds)
	}
	return podGrace(pod)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
