package podstatus

import v1 "k8s.io/api/core/v1"

// AllContainersRestarting returns the AllContainersRestarting condition: True from the exit
// that asks for a restart of the whole pod until the runtime holds none of its old
// containers any more (C14). Held are the containers that the runtime still knows, running
// or ended; old is what was reported before, and may be nil.
//
// It belongs to pods for which [CouldRestartAll] holds. Unlike the other conditions it
// carries no generation, as the kubelet's carries none.
func AllContainersRestarting(pod *v1.Pod, old *v1.PodStatus, held []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	c := v1.PodCondition{Type: v1.AllContainersRestarting, Status: v1.ConditionFalse}
	switch {
	case IsTerminal(phase):
		c.Reason = terminalReason(phase)
	case restartOfAllAsked(pod, old, held) && holdsAny(pod, held):
		c.Status = v1.ConditionTrue
		c.Reason = ReasonRestartAllContainersStarted
		c.Message = "container exited with restart policy rule"
	}
	return c
}

// restartOfAllAsked reports whether a restart was asked for and is not over yet, or is asked
// for by a container that the runtime holds as ended.
func restartOfAllAsked(pod *v1.Pod, old *v1.PodStatus, held []v1.ContainerStatus) bool {
	var reported statusLists
	if old != nil {
		if isTrue(old.Conditions, v1.AllContainersRestarting) {
			return true
		}
		reported = listsOf(old)
	}
	return anyAsks(pod.Spec.InitContainers, held, reported) || anyAsks(pod.Spec.Containers, held, reported)
}

// anyAsks looks at the exit code that the runtime knows and at the one reported before: the
// runtime's record may already be that of a later attempt.
func anyAsks(containers []v1.Container, held []v1.ContainerStatus, reported statusLists) bool {
	for i := range containers {
		c := &containers[i]
		now := statusNamed(held, c.Name)
		if now == nil || now.State.Terminated == nil {
			continue
		}
		if asksForRestartOfAll(c, now.State.Terminated.ExitCode) {
			return true
		}
		before := reported.named(c.Name)
		if before != nil && before.State.Terminated != nil && asksForRestartOfAll(c, before.State.Terminated.ExitCode) {
			return true
		}
	}
	return false
}

// holdsAny reports whether the runtime still holds a container of the spec.
func holdsAny(pod *v1.Pod, held []v1.ContainerStatus) bool {
	for i := range held {
		name := held[i].Name
		if specNamed(pod.Spec.InitContainers, name) != nil || specNamed(pod.Spec.Containers, name) != nil {
			return true
		}
	}
	return false
}
