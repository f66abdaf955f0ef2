package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// ShouldRestart reports whether a container that exited with this code runs again. The
// container's rules come first, then its own policy, then the pod's (T5). Rules without a
// policy of the container's own are not in force.
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

// matchingRule returns the first rule of the container that speaks about the exit code, or nil.
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

// CouldRestartAll reports whether any exit of any container could restart the whole pod (T2).
// Only such pods carry the AllContainersRestarting condition.
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
