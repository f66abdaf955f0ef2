package status

import (
	v1 "k8s.io/api/core/v1"

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
	case p.finished:
		return false
	default:
		return p.vanished || anyRuns(&p.status)
	}
}

// anyRuns reports whether a container is reported running.
func anyRuns(status *v1.PodStatus) bool {
	for _, list := range containerLists(status) {
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
	was, now := containerLists(old), containerLists(next)
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

func containerLists(status *v1.PodStatus) [3][]v1.ContainerStatus {
	return [3][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses}
}
