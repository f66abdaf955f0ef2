package worker

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// observation is the input of a status: the runtime's state of the pod and the last reported
// status.
type observation struct {
	pod *v1.Pod
	// known reports that the runtime has the pod; found is its state.
	known bool
	found runtime.Pod
	// old is the last reported status, or the API's status.
	old *v1.PodStatus
}

// report makes the status of the pod, stores it and returns it. Over reports that nothing of
// the pod will be started again.
func (p *worker) report(s *observation, now time.Time, over bool) v1.PodStatus {
	status := podstatus.Generate(s.pod, p.facts(s, over), *s.old, now)
	if p.stage == syncing && status.Reason == podstatus.ReasonDeadlineExceeded && !podstatus.IsTerminal(s.old.Phase) {
		p.event(s.pod, "", v1.EventTypeNormal, status.Reason, status.Message)
	}
	if p.orphan {
		return status
	}
	for {
		if _, err := p.w.opts.Status.SetPodStatus(s.pod, status); err != nil {
			p.log.Error("status rejected", "err", err)
		}
		// A probe result that was stored since the status was made would be overwritten, and
		// no other turn would notice.
		if !p.probedAgain(s, &status, now, over) {
			return status
		}
	}
}

// probedAgain makes the status again if the prober's results have changed since the status was
// made, and reports whether they have.
func (p *worker) probedAgain(s *observation, status *v1.PodStatus, now time.Time, over bool) bool {
	probed := *status
	probed.InitContainerStatuses = slices.Clone(status.InitContainerStatuses)
	probed.ContainerStatuses = slices.Clone(status.ContainerStatuses)
	p.w.opts.Prober.UpdatePodStatus(s.pod, &probed)
	if sameProbed(status.InitContainerStatuses, probed.InitContainerStatuses) && sameProbed(status.ContainerStatuses, probed.ContainerStatuses) {
		return false
	}
	*status = podstatus.Generate(s.pod, p.facts(s, over), *s.old, now)
	return true
}

func sameProbed(a, b []v1.ContainerStatus) bool {
	return slices.EqualFunc(a, b, func(a, b v1.ContainerStatus) bool {
		return a.Ready == b.Ready && podstatus.IsStarted(&a) == podstatus.IsStarted(&b)
	})
}

// facts are what the worker, the runtime and the prober know of the pod.
func (p *worker) facts(s *observation, over bool) podstatus.Facts {
	facts := podstatus.Facts{
		Attempts:        attempts(p.shown(s.found.Containers)),
		Sandbox:         s.known && !s.found.NoPlace,
		IPs:             s.found.IPs,
		HostIPs:         p.w.opts.HostIPs(),
		Ended:           over,
		EnforceDeadline: p.stage == syncing,
		Waiting:         p.waiting,
		Restarting:      p.restarting,
		Resources:       p.actuated,
		Conditions:      p.w.opts.Status.GetPodResizeConditions(p.uid),
		Probe:           func(status *v1.PodStatus) { p.w.opts.Prober.UpdatePodStatus(s.pod, status) },
	}
	if p.evicted != nil && !p.evicted.Hold {
		facts.Failure = &podstatus.Failure{Reason: p.evicted.Reason, Message: p.evicted.Message, Condition: p.evicted.Condition}
	}
	return facts
}

// attempts are containers of the runtime in the words of a status.
func attempts(containers []runtime.Container) []podstatus.Attempt {
	all := make([]podstatus.Attempt, len(containers))
	for i := range containers {
		all[i] = attempt(&containers[i])
	}
	return all
}

func attempt(c *runtime.Container) podstatus.Attempt {
	return podstatus.Attempt{
		Container: c.Name, ID: c.ID, Number: c.Attempt, State: attemptStates[c.State],
		Image: c.Image, ImageID: c.ImageID, EarlierSandbox: c.EarlierPlace,
		StartedAt: c.StartedAt, FinishedAt: c.FinishedAt,
		ExitCode: c.ExitCode, Signal: c.Signal, Reason: c.Reason, Message: c.Message,
	}
}

var attemptStates = map[runtime.State]podstatus.AttemptState{
	runtime.Created: podstatus.AttemptCreated,
	runtime.Running: podstatus.AttemptRunning,
	runtime.Exited:  podstatus.AttemptExited,
}

// isRestartingAll reports whether the status has the condition of a restart of the whole pod.
func isRestartingAll(status *v1.PodStatus) bool {
	c := podstatus.FindCondition(status.Conditions, v1.AllContainersRestarting)
	return c != nil && c.Status == v1.ConditionTrue
}
