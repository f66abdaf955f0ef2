package podrules

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

const (
	// UnseenExitCode is the exit code of a killed process, reported for an end that was not
	// observed.
	UnseenExitCode = 137
	unseenMessage  = "The container could not be located when the pod was terminated"
)

// Terminate returns the status of a pod that has ended: every container is terminated, except
// ephemeral containers and containers that never started (K5).
//
// Terminate starts from the cached status, or from the pod's status if cached is nil (K1). A
// container whose end is not in the status gets the termination that observed returns for its ID
// (observed may be nil), else exit code 137 with reason ContainerStatusUnknown (K2, K4). Last
// terminations are kept (K8). The phase becomes terminal, except for a static pod (K6), and Ready
// and ContainersReady are set accordingly; Next sets their transition times. The generation is
// unchanged (K7).
//
// The arguments are not modified: the result has its own copy of the lists that change.
func Terminate(pod *v1.Pod, cached *v1.PodStatus, observed func(containerID string) (v1.ContainerStateTerminated, bool)) v1.PodStatus {
	if cached == nil {
		cached = &pod.Status
	}
	next := *cached
	regular, initial := 0, attempted(cached.InitContainerStatuses)
	// The pod object may lag behind the cache, or the cache be younger than the pod: either
	// is evidence. The kubelet looks at the pod object alone, and so can leave a container
	// running in a failed pod (K3).
	if HasInitialized(pod, cached) || HasInitialized(pod, &pod.Status) {
		regular = len(cached.ContainerStatuses)
	}
	var seen, seenInit bool
	next.ContainerStatuses, seen = ended(cached.ContainerStatuses, regular, observed)
	next.InitContainerStatuses, seenInit = ended(cached.InitContainerStatuses, initial, observed)
	if !IsStatic(pod) && !IsTerminal(next.Phase) {
		next.Phase = v1.PodFailed
		if seen || seenInit {
			next.Phase = finalPhase(pod, &next)
		}
	}
	if IsTerminal(next.Phase) {
		next.Conditions = unready(pod, next.Conditions, next.Phase)
	}
	return next
}

// unready returns conditions in which a pod of a terminal phase is not ready. The kubelet
// sees to that only when it writes to the API (X6), so that its own readers can meet a failed
// pod that is ready. Conditions that say so already are returned themselves.
func unready(pod *v1.Pod, conditions []v1.PodCondition, phase v1.PodPhase) []v1.PodCondition {
	if !IsTrue(conditions, v1.PodReady) && !IsTrue(conditions, v1.ContainersReady) {
		return conditions
	}
	ready := TerminalCondition(pod, v1.PodReady, phase)
	containers := TerminalCondition(pod, v1.ContainersReady, phase)
	return withConditions(conditions, &ready, &containers)
}

// finalPhase is Succeeded if the containers say so and Failed otherwise. It is asked only
// where ends were observed that the cached phase was computed without: to fail such a pod
// unseen, as for all others, would be a guess that is known to be wrong.
func finalPhase(pod *v1.Pod, status *v1.PodStatus) v1.PodPhase {
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	if Phase(pod, all, true, true) == v1.PodSucceeded {
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

// ended returns statuses with each container terminated that is among the first n, or whose
// end was observed, and whether any end was observed. Without a change it returns statuses itself.
func ended(statuses []v1.ContainerStatus, n int, observed func(string) (v1.ContainerStateTerminated, bool)) (_ []v1.ContainerStatus, anySeen bool) {
	next, copied := statuses, false
	for i := range statuses {
		if statuses[i].State.Terminated != nil {
			continue
		}
		end, seen := endOf(statuses[i].ContainerID, observed)
		if !seen && i >= n {
			continue
		}
		if !copied {
			next, copied = ExactCopy(statuses), true
		}
		next[i].State = v1.ContainerState{Terminated: &end}
		anySeen = anySeen || seen
	}
	return next, anySeen
}

// endOf returns the observed end of a container, or the placeholder for an end that was not
// observed.
func endOf(containerID string, observed func(string) (v1.ContainerStateTerminated, bool)) (_ v1.ContainerStateTerminated, seen bool) {
	if observed != nil && containerID != "" {
		if end, seen := observed(containerID); seen {
			return end, true
		}
	}
	return v1.ContainerStateTerminated{
		ExitCode: UnseenExitCode,
		Reason:   ReasonContainerStatusUnknown,
		Message:  unseenMessage,
	}, false
}

// HasInitialized reports whether status shows that all init containers of the pod once completed,
// so that regular containers may have run (K3): the pod has no init containers; or a regular
// container ran; or the last listed init container succeeded, or is a sidecar that started.
func HasInitialized(pod *v1.Pod, status *v1.PodStatus) bool {
	if len(pod.Spec.InitContainers) == 0 {
		return true
	}
	for i := range status.ContainerStatuses {
		if hasLeftWaiting(&status.ContainerStatuses[i]) {
			return true
		}
	}
	n := len(status.InitContainerStatuses)
	if n == 0 {
		return false
	}
	last := &status.InitContainerStatuses[n-1]
	spec := SpecNamed(pod.Spec.InitContainers, last.Name)
	switch {
	case spec == nil:
		return false
	case IsSidecar(spec):
		return last.State.Running != nil && IsStarted(last)
	}
	return exitedWithZero(&last.State) || exitedWithZero(&last.LastTerminationState)
}

// attempted counts the init containers up to the last one that ever left waiting; at least
// one, since the pod's end must show somewhere (K4).
func attempted(statuses []v1.ContainerStatus) int {
	for i := len(statuses) - 1; i >= 0; i-- {
		if hasLeftWaiting(&statuses[i]) {
			return i + 1
		}
	}
	return min(len(statuses), 1)
}

// hasLeftWaiting reports whether there is a sign that the container was ever started. A
// status without any state counts as one: nothing says that the container still waits.
func hasLeftWaiting(status *v1.ContainerStatus) bool {
	return status.State.Waiting == nil || status.LastTerminationState.Terminated != nil
}

func exitedWithZero(state *v1.ContainerState) bool {
	return state.Terminated != nil && state.Terminated.ExitCode == 0
}

// Kind is the kind of a container, in the words of the kubelet's metrics.
type Kind string

const (
	KindContainer          Kind = "container"
	KindInitContainer      Kind = "init_container"
	KindEphemeralContainer Kind = "ephemeral_container"
)

// TerminatedContainer is a container that has just ended, with the labels of the metric.
type TerminatedContainer struct {
	Name     string
	Kind     Kind
	ExitCode int32
	Reason   string
}

// NewlyTerminated returns the containers that are terminated in next and were not, or were absent,
// in old (M2): init, then regular, then ephemeral containers. It allocates only if there are any.
func NewlyTerminated(old, next *v1.PodStatus) []TerminatedContainer {
	found := appendTerminated(nil, KindInitContainer, old.InitContainerStatuses, next.InitContainerStatuses)
	found = appendTerminated(found, KindContainer, old.ContainerStatuses, next.ContainerStatuses)
	return appendTerminated(found, KindEphemeralContainer, old.EphemeralContainerStatuses, next.EphemeralContainerStatuses)
}

func appendTerminated(found []TerminatedContainer, kind Kind, old, next []v1.ContainerStatus) []TerminatedContainer {
	for i := range next {
		end := next[i].State.Terminated
		if end == nil {
			continue
		}
		if before := StatusNamed(old, next[i].Name); before != nil && before.State.Terminated != nil {
			continue
		}
		found = append(found, TerminatedContainer{
			Name: next[i].Name, Kind: kind, ExitCode: end.ExitCode, Reason: end.Reason,
		})
	}
	return found
}
