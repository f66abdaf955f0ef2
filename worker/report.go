package worker

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// draft makes the status of a pod from what was seen of it: containers, phase, addresses.
// What the probes know and the conditions that follow from it come after, see complete.
// Over says that nothing of the pod will be started again.
func (s *sight) draft(hostIPs []string, over bool) v1.PodStatus {
	status := v1.PodStatus{
		QOSClass:              qosClass(s.pod),
		ContainerStatuses:     s.containerStatuses(s.pod.Spec.Containers, s.old.ContainerStatuses),
		InitContainerStatuses: s.containerStatuses(s.pod.Spec.InitContainers, s.old.InitContainerStatuses),
		StartTime:             s.old.StartTime,
	}
	status.EphemeralContainerStatuses = refused(s.pod.Spec.EphemeralContainers)
	s.addresses(&status, hostIPs)
	s.phase(&status, over)
	return status
}

// refused are the statuses of ephemeral containers, which come after a pod was admitted
// and so cannot reject it: their status says that they will not run.
func refused(ephemeral []v1.EphemeralContainer) []v1.ContainerStatus {
	var statuses []v1.ContainerStatus
	for _, c := range ephemeral {
		statuses = append(statuses, v1.ContainerStatus{Name: c.Name, Image: c.Image, State: v1.ContainerState{
			Waiting: &v1.ContainerStateWaiting{Reason: runtime.WaitingConfigError, Message: messageEphemeral},
		}})
	}
	return statuses
}

func (s *sight) phase(status *v1.PodStatus, over bool) {
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	for i := range all {
		// A container that a probe has stopped is between two runs, not ended.
		if exit := lastExit(&all[i]); exit != nil && s.reborn[exit.ContainerID] && !over {
			all[i].State = v1.ContainerState{Running: &v1.ContainerStateRunning{}}
		}
	}
	status.Phase = podstatus.Phase(s.pod, all, over, anyRegular(s.pod, ofThisPlace(s.found.Containers)))
	switch { // an ended pod stays ended, whether the API or this node said so
	case podstatus.IsTerminal(s.pod.Status.Phase):
		status.Phase = s.pod.Status.Phase
	case podstatus.IsTerminal(s.old.Phase):
		status.Phase = s.old.Phase
	}
	if status.Phase == s.old.Phase {
		status.Reason, status.Message = s.old.Reason, s.old.Message
	}
}

// pastDeadline fails a pod that was active for longer than it may.
func pastDeadline(status *v1.PodStatus) {
	status.Phase, status.Reason, status.Message = v1.PodFailed, reasonDeadlineExceeded, messageDeadlineExceeded
}

// deadline is when the pod has been active for as long as it may; zero is never.
func deadline(pod *v1.Pod, start *metav1.Time) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || start.IsZero() {
		return time.Time{}
	}
	return start.Add(seconds(*pod.Spec.ActiveDeadlineSeconds))
}

func (s *sight) addresses(status *v1.PodStatus, hostIPs []string) {
	for _, ip := range hostIPs {
		status.HostIPs = append(status.HostIPs, v1.HostIP{IP: ip})
	}
	if len(hostIPs) > 0 {
		status.HostIP = hostIPs[0]
	}
	ips := s.found.IPs
	if len(ips) == 0 && s.pod.Spec.HostNetwork {
		ips = hostIPs
	}
	for _, ip := range ips {
		status.PodIPs = append(status.PodIPs, v1.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		status.PodIP = ips[0]
	}
}

// complete adds the conditions. Those of others are taken from the pod, since readiness
// gates look at them; the status manager never writes them. A pod that is over has no
// place to start containers in any more, whatever the runtime still keeps of it.
func (s *sight) complete(status *v1.PodStatus, resize []v1.PodCondition, over bool) {
	pod, all := s.pod, slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	for _, c := range pod.Status.Conditions {
		if !podstatus.IsOwned(c.Type) && !podstatus.IsShared(c.Type) {
			status.Conditions = append(status.Conditions, c)
		}
	}
	status.Conditions = append(status.Conditions, resize...)
	for _, before := range [][]v1.PodCondition{s.old.Conditions, pod.Status.Conditions} {
		if target := podstatus.FindCondition(before, v1.DisruptionTarget); target != nil {
			status.Conditions = append(status.Conditions, *target)
			break
		}
	}
	status.Conditions = append(status.Conditions,
		podstatus.ReadyToStartContainers(pod, over || !s.known),
		podstatus.Initialized(pod, s.old, all, status.Phase),
		podstatus.Ready(pod, status.Conditions, all, status.Phase),
		podstatus.ContainersReady(pod, all, status.Phase),
		v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue, ObservedGeneration: pod.Generation},
	)
	if podstatus.CouldRestartAll(pod) {
		status.Conditions = append(status.Conditions, s.restartCondition(status.Phase))
	}
}

// restartCondition says whether a restart of the whole pod is under way.
func (s *sight) restartCondition(phase v1.PodPhase) v1.PodCondition {
	var held []v1.ContainerStatus
	for i := range s.found.Containers {
		c := &s.found.Containers[i]
		if statusNamed(held, c.Name) != nil {
			continue // an older attempt
		}
		status := v1.ContainerStatus{Name: c.Name, ContainerID: c.ID}
		if !alive(c) {
			status.State.Terminated = terminated(c)
		}
		held = append(held, status)
	}
	return podstatus.AllContainersRestarting(s.pod, s.old, held, phase)
}

// isRestartingAll reports whether a status says that the whole pod is being restarted.
func isRestartingAll(status *v1.PodStatus) bool {
	c := podstatus.FindCondition(status.Conditions, v1.AllContainersRestarting)
	return c != nil && c.Status == v1.ConditionTrue
}
