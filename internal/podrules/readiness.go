package podrules

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ContainersReady returns the ContainersReady condition: whether each regular container and each
// sidecar is ready. Statuses are the statuses of init and regular containers together; nil means
// that no status was reported yet (C5, C6, C7).
func ContainersReady(pod *v1.Pod, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	return containersReady(pod, statusLists{regular: statuses}, phase)
}

// Ready returns the Ready condition: containers ready, and every readiness gate met by a condition
// in conditions (C8, C9). Statuses are the statuses of init and regular containers together.
func Ready(pod *v1.Pod, conditions []v1.PodCondition, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	containers := ContainersReady(pod, statuses, phase)
	return readyGiven(pod, &containers, in(conditions))
}

// NeedsReadinessReconcile reports whether the pod has readiness gates and its Ready condition no
// longer matches its containers and gates. Sidecars count; the kubelet omits them here and so finds
// a difference in every pod with a sidecar (C16).
func NeedsReadinessReconcile(pod *v1.Pod, status *v1.PodStatus) bool {
	if len(pod.Spec.ReadinessGates) == 0 {
		return false
	}
	current := FindCondition(status.Conditions, v1.PodReady)
	if current == nil {
		return false
	}
	containers := containersReady(pod, listsOf(status), status.Phase)
	want := readyGiven(pod, &containers, in(status.Conditions))
	return current.Status != want.Status || current.Message != want.Message
}

// TerminalCondition returns the Ready or ContainersReady condition of a terminal phase: False,
// because the pod completed or failed (C7).
func TerminalCondition(pod *v1.Pod, t v1.PodConditionType, phase v1.PodPhase) v1.PodCondition {
	return generatedFalse(pod, t, terminalReason(phase), "")
}

// terminalReason is empty for a phase that is not terminal.
func terminalReason(phase v1.PodPhase) string {
	switch phase {
	case v1.PodSucceeded:
		return ReasonPodCompleted
	case v1.PodFailed:
		return ReasonPodFailed
	}
	return ""
}

func containersReady(pod *v1.Pod, statuses statusLists, phase v1.PodPhase) v1.PodCondition {
	if statuses.isNil() {
		return generatedFalse(pod, v1.ContainersReady, ReasonUnknownContainerStatuses, "")
	}
	if phase == v1.PodFailed {
		return TerminalCondition(pod, v1.ContainersReady, phase)
	}
	unknown, unready := notReady(pod, statuses)
	if phase == v1.PodSucceeded && len(unknown) == 0 {
		return TerminalCondition(pod, v1.ContainersReady, phase)
	}
	if len(unknown)+len(unready) > 0 {
		return generatedFalse(pod, v1.ContainersReady, ReasonContainersNotReady, lists("unknown", unknown, "unready", unready))
	}
	return Generated(pod, v1.ContainersReady, v1.ConditionTrue)
}

// notReady names the sidecars and regular containers, in spec order, that have no status or
// an unready one. It allocates nothing when all are ready.
func notReady(pod *v1.Pod, statuses statusLists) (unknown, unready []string) {
	look := func(name string) {
		switch s := statuses.named(name); {
		case s == nil:
			unknown = append(unknown, name)
		case !s.Ready:
			unready = append(unready, name)
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; IsSidecar(c) {
			look(c.Name)
		}
	}
	for i := range pod.Spec.Containers {
		look(pod.Spec.Containers[i].Name)
	}
	return unknown, unready
}

// lists writes one or two lists of names as the kubelet words them.
func lists(what1 string, names1 []string, what2 string, names2 []string) string {
	var parts []string
	if len(names1) > 0 {
		parts = append(parts, "containers with "+what1+" status: ["+strings.Join(names1, " ")+"]")
	}
	if len(names2) > 0 {
		parts = append(parts, "containers with "+what2+" status: ["+strings.Join(names2, " ")+"]")
	}
	return strings.Join(parts, ", ")
}

// conditionFinder returns the condition of a type, or nil.
type conditionFinder func(v1.PodConditionType) *v1.PodCondition

// in finds conditions in a list.
func in(conditions []v1.PodCondition) conditionFinder {
	return func(t v1.PodConditionType) *v1.PodCondition { return FindCondition(conditions, t) }
}

// readyGiven derives Ready from ContainersReady and the readiness gates.
func readyGiven(pod *v1.Pod, containers *v1.PodCondition, find conditionFinder) v1.PodCondition {
	if containers.Status != v1.ConditionTrue {
		c := *containers
		c.Type = v1.PodReady
		return c
	}
	if message := unmetGates(pod, find); message != "" {
		return generatedFalse(pod, v1.PodReady, ReasonReadinessGatesNotReady, message)
	}
	return Generated(pod, v1.PodReady, v1.ConditionTrue)
}

// unmetGates describes each readiness gate without a condition that is True, or returns "".
func unmetGates(pod *v1.Pod, find conditionFinder) string {
	var unmet []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := find(gate.ConditionType); {
		case c == nil:
			unmet = append(unmet, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != v1.ConditionTrue:
			unmet = append(unmet, fmt.Sprintf(`the status of pod readiness gate %q is not "True", but %s`, gate.ConditionType, c.Status))
		}
	}
	return strings.Join(unmet, ", ")
}

// Initialized returns the Initialized condition: whether each init container has completed, now or
// earlier (C10, C11, C12). Statuses are the statuses of init and regular containers together; old
// is the previous status, and may be nil.
func Initialized(pod *v1.Pod, old *v1.PodStatus, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	if statuses == nil && len(pod.Spec.InitContainers) > 0 {
		return generatedFalse(pod, v1.PodInitialized, ReasonUnknownContainerStatuses, "")
	}
	unknown, incomplete := notInitialized(pod, statuses)
	if phase == v1.PodSucceeded && len(unknown) == 0 {
		c := Generated(pod, v1.PodInitialized, v1.ConditionTrue)
		c.Reason = ReasonPodCompleted
		return c
	}
	if len(unknown)+len(incomplete) == 0 || anyRegularStarted(pod, statuses) || wasInitialized(old) {
		return Generated(pod, v1.PodInitialized, v1.ConditionTrue)
	}
	return generatedFalse(pod, v1.PodInitialized, ReasonContainersNotInitialized,
		lists("unknown", unknown, "incomplete", incomplete))
}

// notInitialized names the init containers, in spec order, without a status or with work
// left: a sidecar must have started, any other must be ready, which means that it exited with 0.
func notInitialized(pod *v1.Pod, statuses []v1.ContainerStatus) (unknown, incomplete []string) {
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		status := StatusNamed(statuses, spec.Name)
		switch {
		case status == nil:
			unknown = append(unknown, spec.Name)
		case IsSidecar(spec) && !IsStarted(status), !IsSidecar(spec) && !status.Ready:
			incomplete = append(incomplete, spec.Name)
		}
	}
	return unknown, incomplete
}

// anyRegularStarted is proof that initialization was over once, also while sidecars restart.
func anyRegularStarted(pod *v1.Pod, statuses []v1.ContainerStatus) bool {
	for i := range statuses {
		state := &statuses[i].State
		if (state.Running != nil || state.Terminated != nil) && SpecNamed(pod.Spec.Containers, statuses[i].Name) != nil {
			return true
		}
	}
	return false
}

// wasInitialized keeps a pod initialized while all its containers restart in place (C12).
func wasInitialized(old *v1.PodStatus) bool {
	return old != nil && IsTrue(old.Conditions, v1.PodInitialized)
}

// ReadyToStartContainers returns the PodReadyToStartContainers condition: True while the pod has a
// sandbox with a network, so that no new sandbox is needed (C13).
func ReadyToStartContainers(pod *v1.Pod, needsNewSandbox bool) v1.PodCondition {
	if needsNewSandbox {
		return Generated(pod, v1.PodReadyToStartContainers, v1.ConditionFalse)
	}
	return Generated(pod, v1.PodReadyToStartContainers, v1.ConditionTrue)
}
