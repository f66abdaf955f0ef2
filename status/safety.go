package status

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// couldRun reports whether the terminal phase of a pod must be withheld because a container could
// still be running. For any other phase it makes no difference, and Safety is not asked. Without
// Safety a container could run that was last reported running: a status without container
// statuses, as of an eviction, does not say that they have stopped.
func (m *Manager) couldRun(p *plan) bool {
	switch {
	case !podstatus.IsTerminal(p.status.Phase):
		return false
	case m.opts.Safety != nil:
		return m.opts.Safety.CouldHaveRunningContainers(p.pod)
	default:
		return p.unproven()
	}
}

// ending reports whether a pod in deletion has reported that all containers have ended, and Safety does not say so yet.
// Within moments Safety says so, and one write has the end and the phase, so the first turn of such a pod only waits. No
// client loses by that: the endpoints of a pod in deletion are not ready, whatever its status says.
func (m *Manager) ending(p *plan) bool {
	return p.pod.DeletionTimestamp != nil && m.opts.Safety != nil && !p.unproven() && !p.base.ended && m.couldRun(p)
}

// unproven reports whether the reports leave open that a container still runs. Only for them, Safety
// may say otherwise.
func (s *snapshot) unproven() bool { return !s.finished && (s.vanished || anyRuns(&s.status)) }

// withholds reports whether the phase of a status is kept from the API by what was reported. What
// Safety would say is not known before a turn: only that asks it, since it may wait for the reporter.
func (c *cache) withholds(s *snapshot) bool {
	return c.judges && podstatus.IsTerminal(s.status.Phase) && s.unproven()
}

// WithheldError is the cause of a [*Warning]: a pod is reported as ended while its containers could
// still run, so the phase is withheld from the API. The rest of the status is sent. The phase is sent
// after a report in which the containers have terminated, or after [Manager.TerminatePod]; until then
// the pod is in [Manager.Pending]. A manager with Options.Safety returns no such error.
type WithheldError struct {
	Phase v1.PodPhase
	// Containers were last reported running.
	Containers []string
}

func (e *WithheldError) Error() string {
	return fmt.Sprintf("phase %s is withheld from the API: the end of these containers was not reported: %s; "+
		"report them as terminated, or call TerminatePod once none runs", e.Phase, strings.Join(e.Containers, ", "))
}

// withheld returns the error of a report whose phase is withheld, nil if it is not.
func (m *Manager) withheld(pod *v1.Pod, s *snapshot) error {
	if !m.cache.withholds(s) {
		return nil
	}
	e := &WithheldError{Phase: s.status.Phase}
	for _, list := range podrules.ContainerLists(&s.status) {
		for i := range list {
			if list[i].State.Running != nil {
				e.Containers = append(e.Containers, list[i].Name)
			}
		}
	}
	if s.vanished {
		for i := range pod.Spec.Containers {
			if name := pod.Spec.Containers[i].Name; !names(s.status.ContainerStatuses, name) {
				e.Containers = append(e.Containers, name)
			}
		}
	}
	return fmt.Errorf("status: pod %s/%s: %w", pod.Namespace, pod.Name, e)
}

// anyRuns reports whether a container is reported running.
func anyRuns(status *v1.PodStatus) bool {
	for _, list := range podrules.ContainerLists(status) {
		for i := range list {
			if list[i].State.Running != nil {
				return true
			}
		}
	}
	return false
}

// vanished reports whether a container that was running in an earlier report is not in the next
// one, so that its end is not known. It is known again once all containers of the spec are
// reported.
func vanished(pod *v1.Pod, before *snapshot, old, next *v1.PodStatus) bool {
	was, now := podrules.ContainerLists(old), podrules.ContainerLists(next)
	for k := range was {
		for i := range was[k] {
			if was[k][i].State.Running != nil && !names(now[k], was[k][i].Name) {
				return true
			}
		}
	}
	return before != nil && before.vanished && !reportsAll(pod, next)
}

func reportsAll(pod *v1.Pod, status *v1.PodStatus) bool {
	for i := range pod.Spec.Containers {
		if !names(status.ContainerStatuses, pod.Spec.Containers[i].Name) {
			return false
		}
	}
	return true
}

func names(statuses []v1.ContainerStatus, name string) bool {
	for i := range statuses {
		if statuses[i].Name == name {
			return true
		}
	}
	return false
}
