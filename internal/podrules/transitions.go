package podrules

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// TransitionError is the error of a status in which a container that had terminated for good is no
// longer terminated.
type TransitionError struct {
	// Container is the name of the first container that breaks the rule.
	Container string
	// Init reports whether the container is an init container.
	Init bool
	// From and To are the states: "terminated", and one of "running", "waiting", "unknown".
	From, To string
}

func (e *TransitionError) Error() string {
	kind := "container"
	if e.Init {
		kind = "init container"
	}
	return fmt.Sprintf("%s %q may not go from %s to %s: no restart policy or rule lets it run again",
		kind, e.Container, e.From, e.To)
}

// CheckTransitions reports whether incoming may follow old. CheckTransitions returns nil or a
// [*TransitionError] that names the first container that left its final state.
//
// Pods that always restart are exempt (T1), and so are pods in which a container may restart all
// others (T2). Containers are matched by name; a missing container breaks no rule, and ephemeral
// containers are ignored (T8). Phases are not checked here: [Next] and [Merge] keep a terminal
// phase (T10).
func CheckTransitions(pod *v1.Pod, old, incoming *v1.PodStatus) error {
	if pod.Spec.RestartPolicy == v1.RestartPolicyAlways || CouldRestartAll(pod) {
		return nil
	}
	if err := checkList(pod, pod.Spec.Containers, old.ContainerStatuses, incoming.ContainerStatuses); err != nil {
		return err
	}
	if err := checkList(pod, pod.Spec.InitContainers, old.InitContainerStatuses, incoming.InitContainerStatuses); err != nil {
		err.Init = true
		return err
	}
	return nil
}

// checkList returns a concrete type so that the happy path boxes nothing.
func checkList(pod *v1.Pod, specs []v1.Container, old, incoming []v1.ContainerStatus) *TransitionError {
	for i := range old {
		ended := old[i].State.Terminated
		if ended == nil {
			continue
		}
		next := StatusNamed(incoming, old[i].Name)
		if next == nil || next.State.Terminated != nil { // T8, T3
			continue
		}
		if mayLeaveTerminated(pod, SpecNamed(specs, old[i].Name), ended.ExitCode) {
			continue
		}
		return &TransitionError{Container: old[i].Name, From: "terminated", To: stateWord(&next.State)}
	}
	return nil
}

// mayLeaveTerminated holds the exemptions of T3. The pod's OnFailure comes first, so that a
// container's own Never does not tighten it (T4, T9). A sidecar may always restart: its
// policy says so (T6). A container that the spec does not know has only the pod's policy.
func mayLeaveTerminated(pod *v1.Pod, spec *v1.Container, exitCode int32) bool {
	if exitCode != 0 && pod.Spec.RestartPolicy == v1.RestartPolicyOnFailure {
		return true
	}
	return spec != nil && ShouldRestart(pod, spec, exitCode)
}

// stateWord names the state of a container that is not terminated.
func stateWord(state *v1.ContainerState) string {
	switch {
	case state.Running != nil:
		return "running"
	case state.Waiting != nil:
		return "waiting"
	}
	return "unknown"
}

// InitMismatch returns an error for the first init container status of old that is not at the
// position of the container in the spec, or nil. The error is only logged: nothing depends on the
// order, since init statuses are matched by name. The kubelet drops the whole update instead, and
// with it the termination of the pod (T7).
func InitMismatch(pod *v1.Pod, old *v1.PodStatus) error {
	specs := pod.Spec.InitContainers
	for i := range old.InitContainerStatuses {
		got := old.InitContainerStatuses[i].Name
		if i >= len(specs) {
			return fmt.Errorf("init container status %d is %q, but the spec has only %d init containers", i, got, len(specs))
		}
		if want := specs[i].Name; got != want {
			return fmt.Errorf("init container status %d is %q, but the spec has %q there", i, got, want)
		}
	}
	return nil
}
