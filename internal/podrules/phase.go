package podrules

import v1 "k8s.io/api/core/v1"

// Phase computes the phase of a pod from its containers, as the kubelet does. Statuses are the
// statuses of init and regular containers together. PodIsTerminal means that no container will be
// started again, whatever the restart policy; podHasInitialized means that a regular container runs
// or ran, so that a restarting sidecar does not make the pod Pending again.
//
// Phase does not consider the previous phase: [Next] and [Merge] keep a terminal phase.
func Phase(pod *v1.Pod, statuses []v1.ContainerStatus, podIsTerminal, podHasInitialized bool) v1.PodPhase {
	var t tally
	t.countInit(pod, statuses)
	t.countRegular(pod, statuses)
	switch {
	case t.initFailed > 0:
		return v1.PodFailed
	case t.initPending > 0, t.sidecarsPending > 0 && !podHasInitialized, t.waiting > 0:
		return v1.PodPending
	case t.unknown > 0:
		return v1.PodPending
	case t.running > 0:
		return v1.PodRunning
	case t.stopped == 0:
		return v1.PodPending
	case t.stopped == t.ended, podIsTerminal && !IsStatic(pod):
		return t.verdict()
	}
	return v1.PodRunning // all have stopped, and one of them will run again
}

// tally counts the containers of a pod by what they mean for its phase.
type tally struct {
	initPending     int // init containers with work left
	initFailed      int // init containers that failed and will not be tried again
	sidecarsPending int // sidecars that have not started

	// Sidecars and regular containers.
	unknown int
	running int
	waiting int // never ran

	// Regular containers only: a stopped sidecar does not count.
	stopped   int
	ended     int // stopped, and will not run again
	succeeded int // stopped with exit code 0, and not waiting for another run
}

// verdict is the phase of a pod whose regular containers have all stopped.
func (t *tally) verdict() v1.PodPhase {
	if t.stopped == t.succeeded {
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

func (t *tally) countInit(pod *v1.Pod, statuses []v1.ContainerStatus) {
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		status := StatusNamed(statuses, spec.Name)
		if IsSidecar(spec) {
			t.countSidecar(status)
		} else {
			t.countInitContainer(pod, spec, status)
		}
	}
}

func (t *tally) countInitContainer(pod *v1.Pod, spec *v1.Container, status *v1.ContainerStatus) {
	exit := LastExit(status)
	switch {
	case exit == nil:
		t.initPending++
	case exit.ExitCode != 0 && !RunsAgain(pod, spec, exit):
		t.initFailed++
	}
}

func (t *tally) countSidecar(status *v1.ContainerStatus) {
	switch {
	case status == nil:
		t.unknown++
	case status.State.Running != nil:
		t.running++
		if !IsStarted(status) {
			t.sidecarsPending++
		}
	case LastExit(status) != nil:
	case status.State.Waiting != nil:
		t.waiting++
		t.sidecarsPending++
	default:
		t.unknown++
		t.sidecarsPending++
	}
}

func (t *tally) countRegular(pod *v1.Pod, statuses []v1.ContainerStatus) {
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		status := StatusNamed(statuses, spec.Name)
		exit := LastExit(status)
		switch {
		case exit != nil:
			t.countStopped(pod, spec, status, exit)
		case status == nil:
			t.unknown++
		case status.State.Running != nil:
			t.running++
		case status.State.Waiting != nil:
			t.waiting++
		default:
			t.unknown++
		}
	}
}

func (t *tally) countStopped(pod *v1.Pod, spec *v1.Container, status *v1.ContainerStatus, exit *v1.ContainerStateTerminated) {
	t.stopped++
	if !RunsAgain(pod, spec, exit) {
		t.ended++
	}
	// A container that waits after an exit was meant to run again, so that its last exit is
	// not yet its result.
	if status.State.Terminated != nil && exit.ExitCode == 0 {
		t.succeeded++
	}
}

// LastExit returns the last termination of a container that does not run: the current state, or the
// state before it began to wait. LastExit returns nil for a container that runs, never ran, or is
// unknown: a status without a state is unknown, whatever its last termination. Status may be nil.
func LastExit(status *v1.ContainerStatus) *v1.ContainerStateTerminated {
	switch {
	case status == nil, status.State.Running != nil:
		return nil
	case status.State.Terminated != nil:
		return status.State.Terminated
	case status.State.Waiting != nil:
		return status.LastTerminationState.Terminated
	}
	return nil
}

// RunsAgain reports whether the container is restarted after this exit: by its restart policy and
// rules, or because it was stopped for a restart of the whole pod.
func RunsAgain(pod *v1.Pod, spec *v1.Container, exit *v1.ContainerStateTerminated) bool {
	return exit.Reason == ReasonRestartingAllContainers || ShouldRestart(pod, spec, exit.ExitCode)
}
