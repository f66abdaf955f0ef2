package podrules

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// ShouldRestart reports whether a container that exited with this code runs again. The container's
// restart rules come first, then the container's policy, then the pod's (T5). Rules without a
// container policy are ignored.
func ShouldRestart(pod *v1.Pod, container *v1.Container, exitCode int32) bool {
	if container.RestartPolicy != nil {
		switch rule := matchingRule(container, exitCode); {
		case rule == nil:
		case rule.Action == v1.ContainerRestartRuleActionRestart,
			rule.Action == v1.ContainerRestartRuleActionRestartAllContainers:
			return true
		}
		switch *container.RestartPolicy {
		case v1.ContainerRestartPolicyAlways:
			return true
		case v1.ContainerRestartPolicyOnFailure:
			return exitCode != 0
		case v1.ContainerRestartPolicyNever:
			return false
		}
	}
	switch pod.Spec.RestartPolicy {
	case v1.RestartPolicyOnFailure:
		return exitCode != 0
	case v1.RestartPolicyNever:
		return false
	}
	return true // Always, also when the field was left empty
}

// matchingRule returns the first rule of the container that matches the exit code, or nil.
func matchingRule(container *v1.Container, exitCode int32) *v1.ContainerRestartRule {
	for i := range container.RestartPolicyRules {
		rule := &container.RestartPolicyRules[i]
		if rule.ExitCodes == nil {
			continue
		}
		listed := slices.Contains(rule.ExitCodes.Values, exitCode)
		switch rule.ExitCodes.Operator {
		case v1.ContainerRestartRuleOnExitCodesOpIn:
			if listed {
				return rule
			}
		case v1.ContainerRestartRuleOnExitCodesOpNotIn:
			if !listed {
				return rule
			}
		}
	}
	return nil
}

// asksForRestartOfAll reports whether the exit of the container restarts the whole pod.
func asksForRestartOfAll(container *v1.Container, exitCode int32) bool {
	rule := matchingRule(container, exitCode)
	return rule != nil && rule.Action == v1.ContainerRestartRuleActionRestartAllContainers
}

// CouldRestartAll reports whether any exit of any container could restart the whole pod (T2). Only
// such pods have the AllContainersRestarting condition.
func CouldRestartAll(pod *v1.Pod) bool {
	return anyRestartsAll(pod.Spec.InitContainers) || anyRestartsAll(pod.Spec.Containers)
}

func anyRestartsAll(containers []v1.Container) bool {
	for i := range containers {
		for _, rule := range containers[i].RestartPolicyRules {
			if rule.Action == v1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return false
}

// AllContainersRestarting returns the AllContainersRestarting condition: True from the exit that
// causes a restart of the whole pod until the runtime has none of its old containers any more
// (C14). Held are the containers that the runtime still has, running or ended; old is the previous
// status, and may be nil.
//
// The condition is for pods for which [CouldRestartAll] returns true. Unlike the other conditions
// it has no generation, as in the kubelet.
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
		if IsTrue(old.Conditions, v1.AllContainersRestarting) {
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
		now := StatusNamed(held, c.Name)
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
		if SpecNamed(pod.Spec.InitContainers, name) != nil || SpecNamed(pod.Spec.Containers, name) != nil {
			return true
		}
	}
	return false
}
