package podstatus

import (
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
)

// The kubelet's annotations that distinguish static pods from pods of the API server. A mirror pod
// also has [v1.MirrorPodAnnotationKey], with the hash of its static pod as value.
const (
	// SourceAnnotation is the source of a pod: SourceAPI or SourceFile. Pods from the API server
	// need not have it.
	SourceAnnotation = podrules.SourceAnnotation
	// HashAnnotation identifies the content of a static pod. It equals the pod's UID.
	HashAnnotation = podrules.HashAnnotation
	// SeenAnnotation is when the source first saw this content, in RFC 3339.
	SeenAnnotation = podrules.SeenAnnotation
)

// The values of [SourceAnnotation].
const (
	SourceAPI  = podrules.SourceAPI
	SourceFile = podrules.SourceFile
)

// Reasons of the conditions that the node generates. People and programs match on them.
const (
	// ReasonUnknownContainerStatuses: no container was reported at all.
	ReasonUnknownContainerStatuses = podrules.ReasonUnknownContainerStatuses
	// ReasonPodCompleted: the pod has succeeded, so its containers are not ready.
	ReasonPodCompleted = podrules.ReasonPodCompleted
	// ReasonPodFailed: the pod has failed, whatever the statuses of its containers.
	ReasonPodFailed = podrules.ReasonPodFailed
	// ReasonContainersNotReady: a container is unready or unknown; the message lists which.
	ReasonContainersNotReady = podrules.ReasonContainersNotReady
	// ReasonContainersNotInitialized: an init container is incomplete or unknown; the message lists which.
	ReasonContainersNotInitialized = podrules.ReasonContainersNotInitialized
	// ReasonReadinessGatesNotReady: all containers are ready, but a readiness gate is not.
	ReasonReadinessGatesNotReady = podrules.ReasonReadinessGatesNotReady
	// ReasonRestartAllContainersStarted: a container's exit restarts the whole pod.
	ReasonRestartAllContainersStarted = podrules.ReasonRestartAllContainersStarted
	// ReasonContainerStatusUnknown: the end of the container was not observed.
	ReasonContainerStatusUnknown = podrules.ReasonContainerStatusUnknown
)

// Reasons of container states and of the status itself.
const (
	// ReasonContainerCreating: the container was not started yet.
	ReasonContainerCreating = podrules.ReasonContainerCreating
	// ReasonPodInitializing: the container was not started yet, in a pod with init containers.
	ReasonPodInitializing = podrules.ReasonPodInitializing
	// ReasonCompleted: the container exited with 0.
	ReasonCompleted = podrules.ReasonCompleted
	// ReasonError: the container exited with another code.
	ReasonError = podrules.ReasonError
	// ReasonRestartingAllContainers: the container was stopped because a restart rule of another
	// container restarts the whole pod; it runs again whatever its own policy.
	ReasonRestartingAllContainers = podrules.ReasonRestartingAllContainers
	// ReasonDeadlineExceeded: the pod was active for longer than its spec allows.
	ReasonDeadlineExceeded = podrules.ReasonDeadlineExceeded
)

// TransitionError is the error of a status in which a container that had terminated for good is no
// longer terminated. Nothing of such a status is stored. Its fields name the container and the
// invalid change.
type TransitionError = podrules.TransitionError

// IsTerminal reports whether the phase is final: Succeeded or Failed.
func IsTerminal(phase v1.PodPhase) bool { return podrules.IsTerminal(phase) }

// IsStatic reports whether the pod comes from a manifest on the node rather than from the API
// server. The annotation alone does not decide: every user of the API may set it on a pod. Only
// objects stored by the API server have a resource version. A pod without the annotation and a
// mirror pod are not static.
func IsStatic(pod *v1.Pod) bool { return podrules.IsStatic(pod) }

// IsMirror reports whether the pod is a mirror pod, the API object for a static pod.
func IsMirror(pod *v1.Pod) bool { return podrules.IsMirror(pod) }

// IsSidecar reports whether an init container is a sidecar, which keeps running beside the regular
// containers: its own restart policy is Always.
func IsSidecar(init *v1.Container) bool { return podrules.IsSidecar(init) }

// IsCritical reports whether the pod is critical: a static pod, a mirror pod, or a pod with a
// system priority.
func IsCritical(pod *v1.Pod) bool { return podrules.IsCritical(pod) }

// IsStarted reports whether Started is true, not nil or false. Status may be nil.
func IsStarted(status *v1.ContainerStatus) bool { return podrules.IsStarted(status) }

// IsOwned reports whether only the node writes conditions of this type, as with the kubelet. An
// owned condition that the node does not report is removed from the API.
func IsOwned(t v1.PodConditionType) bool { return podrules.IsOwned(t) }

// FindCondition returns a pointer to the first condition of the type in conditions, or nil. The
// pointer points into the slice: a caller that does not own the slice must not write through it.
func FindCondition(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	return podrules.FindCondition(conditions, t)
}

// FindContainer returns a pointer to the init or regular container of the name in the spec
// of the pod, or nil.
func FindContainer(pod *v1.Pod, name string) *v1.Container { return podrules.FindContainer(pod, name) }

// FindContainerStatus returns a pointer to the status of the init or regular container of the name,
// or nil. The pointer points into status: a caller that does not own status must not write through
// it.
func FindContainerStatus(status *v1.PodStatus, name string) *v1.ContainerStatus {
	return podrules.FindContainerStatus(status, name)
}

// Phase computes the phase of a pod from its containers, as the kubelet does. Statuses are the
// statuses of init and regular containers together. PodIsTerminal means that no container will be
// started again, whatever the restart policy; podHasInitialized means that a regular container runs
// or ran, so that a restarting sidecar does not make the pod Pending again. Phase does not consider
// the previous phase: the manager keeps a terminal phase.
func Phase(pod *v1.Pod, statuses []v1.ContainerStatus, podIsTerminal, podHasInitialized bool) v1.PodPhase {
	return podrules.Phase(pod, statuses, podIsTerminal, podHasInitialized)
}

// Ready returns the Ready condition: containers ready, and every readiness gate met by a condition
// in conditions. Statuses are the statuses of init and regular containers together.
func Ready(pod *v1.Pod, conditions []v1.PodCondition, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	return podrules.Ready(pod, conditions, statuses, phase)
}

// ContainersReady returns the ContainersReady condition: whether each regular container and each
// sidecar is ready. Statuses are the statuses of init and regular containers together; nil means
// that no status was reported yet.
func ContainersReady(pod *v1.Pod, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	return podrules.ContainersReady(pod, statuses, phase)
}

// Initialized returns the Initialized condition: whether each init container has completed, now or
// earlier. Statuses are the statuses of init and regular containers together; old is the previous
// status, and may be nil.
func Initialized(pod *v1.Pod, old *v1.PodStatus, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	return podrules.Initialized(pod, old, statuses, phase)
}

// HasInitialized reports whether status shows that all init containers of the pod once completed,
// so that regular containers may have run: the pod has no init containers; or a regular container
// ran; or the last listed init container succeeded, or is a sidecar that started.
func HasInitialized(pod *v1.Pod, status *v1.PodStatus) bool {
	return podrules.HasInitialized(pod, status)
}

// ShouldRestart reports whether a container that exited with this code runs again. The container's
// restart rules come first, then the container's policy, then the pod's. Rules without a container
// policy are ignored.
func ShouldRestart(pod *v1.Pod, container *v1.Container, exitCode int32) bool {
	return podrules.ShouldRestart(pod, container, exitCode)
}

// LastExit returns the last termination of a container that does not run: the current state, or the
// state before it began to wait. LastExit returns nil for a container that runs, never ran, or is
// unknown: a status without a state is unknown, whatever its last termination. Status may be nil.
func LastExit(status *v1.ContainerStatus) *v1.ContainerStateTerminated {
	return podrules.LastExit(status)
}

// QOSClass returns the quality of service class of the pod. The API server sets the class once from
// the resources of the spec; only static pods come without a class.
func QOSClass(pod *v1.Pod) v1.PodQOSClass { return podrules.QOSClass(pod) }
