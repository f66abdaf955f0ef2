package podstatus

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
)

// Complete completes a partial status as the kubelet would report it: a reporter may know only the
// phase, or only some containers. Fields set in status stay unchanged. Missing fields come from
// previous, which is the status reported before or the API's, or follow from the other fields:
//
//   - a container of the spec without a status gets the status in previous, or waits. In a
//     Succeeded pod it has terminated, since Succeeded means that all containers have terminated.
//     Failed does not: an evicted pod is Failed before its containers are stopped;
//   - an empty phase is computed from the containers;
//   - a missing owned condition is generated, except the conditions of a resize: absent means no
//     resize;
//   - addresses, QoS class, start time and observed generation.
//
// Without completion, missing owned conditions would be removed from the API, and missing
// containers would be reported as unknown. Conditions of other writers are copied from pod.Status;
// the manager takes them from the API in any case. The result shares no memory with the arguments.
//
// Owned are condition types that the reporter owns, besides the kubelet's.
func Complete(pod *v1.Pod, status, previous v1.PodStatus, now time.Time, owned ...v1.PodConditionType) v1.PodStatus {
	o := podrules.Owning(owned...)
	facts := Facts{Ended: podrules.IsTerminal(status.Phase) || podrules.IsTerminal(previous.Phase), Conditions: status.Conditions}
	g := generation{pod: pod, facts: &facts, old: &previous}
	status.InitContainerStatuses = g.fillIn(status.Phase, pod.Spec.InitContainers, status.InitContainerStatuses, previous.InitContainerStatuses)
	status.ContainerStatuses = g.fillIn(status.Phase, pod.Spec.Containers, status.ContainerStatuses, previous.ContainerStatuses)
	status.EphemeralContainerStatuses = g.fillInEphemeral(status.Phase, status.EphemeralContainerStatuses)
	facts.Attempts = attemptsIn(&status)
	if status.Phase == "" {
		g.decidePhase(&status)
	}
	fillInAddresses(&status, &previous)
	status.QOSClass = cmp.Or(status.QOSClass, previous.QOSClass, podrules.QOSClass(pod))
	status.ObservedGeneration = cmp.Or(status.ObservedGeneration, pod.Generation)
	facts.Sandbox = len(status.PodIPs) > 0 || podrules.IsTrue(previous.Conditions, v1.PodReadyToStartContainers) ||
		slices.ContainsFunc(facts.Attempts, func(a Attempt) bool { return a.State == AttemptRunning })
	status.Conditions = g.conditions(o, &status)
	return o.Next(pod, &previous, &status, now)
}

// fillIn returns reported with a status for each container that it lacks.
func (g *generation) fillIn(phase v1.PodPhase, specs []v1.Container, reported, before []v1.ContainerStatus) []v1.ContainerStatus {
	all := podrules.ExactCopy(reported)
	for i := range specs {
		if podrules.StatusNamed(reported, specs[i].Name) != nil {
			continue
		}
		status := v1.ContainerStatus{
			Name: specs[i].Name, Image: specs[i].Image, VolumeMounts: mountStatuses(&specs[i]),
			State: v1.ContainerState{Waiting: g.defaultWaiting()},
		}
		if known := podrules.StatusNamed(before, specs[i].Name); known != nil {
			status = *known
		}
		endBy(&status, phase)
		all = append(all, status)
	}
	return all
}

// endBy ends a container that is not reported by the phase of its pod. A pod succeeds if each
// container has exited with 0.
func endBy(status *v1.ContainerStatus, phase v1.PodPhase) {
	if phase != v1.PodSucceeded || status.State.Terminated != nil {
		return
	}
	status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: podrules.ReasonCompleted, ContainerID: status.ContainerID}}
	status.Ready, status.Started = false, new(bool)
}

func (g *generation) fillInEphemeral(phase v1.PodPhase, reported []v1.ContainerStatus) []v1.ContainerStatus {
	all := podrules.ExactCopy(reported)
	for _, status := range g.ephemeralStatuses(g.pod.Spec.EphemeralContainers, nil) {
		if podrules.StatusNamed(reported, status.Name) != nil {
			continue
		}
		if known := podrules.StatusNamed(g.old.EphemeralContainerStatuses, status.Name); known != nil {
			status = *known
			if status.State.Running != nil {
				endBy(&status, phase)
			}
		}
		all = append(all, status)
	}
	return all
}

func fillInAddresses(status, previous *v1.PodStatus) {
	if status.PodIP == "" && len(status.PodIPs) == 0 {
		status.PodIP, status.PodIPs = previous.PodIP, previous.PodIPs
	}
	if status.HostIP == "" && len(status.HostIPs) == 0 {
		status.HostIP, status.HostIPs = previous.HostIP, previous.HostIPs
	}
	podrules.PairAddresses(&status.PodIP, &status.PodIPs)
	podrules.PairAddresses(&status.HostIP, &status.HostIPs)
}

// attemptsIn are the containers of a status that were started.
func attemptsIn(status *v1.PodStatus) []Attempt {
	var all []Attempt
	for _, s := range initAndRegular(status) {
		a := Attempt{Container: s.Name, ID: s.ContainerID, Number: int(s.RestartCount)}
		switch {
		case s.State.Running != nil:
			a.State = AttemptRunning
		case s.State.Terminated != nil:
			a.State, a.ExitCode, a.Reason = AttemptExited, s.State.Terminated.ExitCode, s.State.Terminated.Reason
		default:
			continue
		}
		all = append(all, a)
	}
	return all
}
