package podstatus

import v1 "k8s.io/api/core/v1"

// Kind is the kind of a container, in the words of the kubelet's metrics.
type Kind string

const (
	KindContainer          Kind = "container"
	KindInitContainer      Kind = "init_container"
	KindEphemeralContainer Kind = "ephemeral_container"
)

// TerminatedContainer is a container that has just ended, in the terms in which ends are counted.
type TerminatedContainer struct {
	Name     string
	Kind     Kind
	ExitCode int32
	Reason   string
}

// NewlyTerminated returns the containers that are terminated in next and were not, or were
// absent, in old (M2): init, then regular, then ephemeral ones. It allocates only if there are any.
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
		if before := statusNamed(old, next[i].Name); before != nil && before.State.Terminated != nil {
			continue
		}
		found = append(found, TerminatedContainer{
			Name: next[i].Name, Kind: kind, ExitCode: end.ExitCode, Reason: end.Reason,
		})
	}
	return found
}
