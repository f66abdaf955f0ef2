package criside

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/audit"
)

// Labels and annotations that the kubelet writes on sandboxes and containers.
const (
	labelPodUID        = "io.kubernetes.pod.uid"
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelContainerName = "io.kubernetes.container.name"
	restartCount       = "io.kubernetes.container.restartCount"
)

// sandboxOf returns what a list says of a sandbox.
func sandboxOf(s *runtimeapi.PodSandbox, at time.Time) audit.Sandbox {
	return audit.Sandbox{
		ID:        s.Id,
		UID:       types.UID(s.GetMetadata().GetUid()),
		Namespace: s.GetMetadata().GetNamespace(),
		Name:      s.GetMetadata().GetName(),
		Attempt:   s.GetMetadata().GetAttempt(),
		Ready:     s.State == runtimeapi.PodSandboxState_SANDBOX_READY,
		Created:   nanoseconds(s.CreatedAt),
		At:        at,
	}
}

func addresses(network *runtimeapi.PodSandboxNetworkStatus) []string {
	var ips []string
	if ip := network.GetIp(); ip != "" {
		ips = append(ips, ip)
	}
	for _, ip := range network.GetAdditionalIps() {
		ips = append(ips, ip.GetIp())
	}
	return ips
}

// containerOf converts a listed container. Its labels, which the kubelet writes, name its pod; a
// container of another program lacks the labels and belongs to the pod of its sandbox.
func containerOf(c *runtimeapi.Container, sandbox audit.Sandbox, at time.Time) audit.Container {
	return audit.Container{
		ID:        c.Id,
		SandboxID: c.PodSandboxId,
		UID:       types.UID(first(c.Labels[labelPodUID], string(sandbox.UID))),
		Namespace: first(c.Labels[labelPodNamespace], sandbox.Namespace),
		PodName:   first(c.Labels[labelPodName], sandbox.Name),
		Name:      first(c.Labels[labelContainerName], c.GetMetadata().GetName()),
		Attempt:   attempt(c.Annotations, c.GetMetadata().GetAttempt()),
		State:     stateOf(c.State),
		Created:   nanoseconds(c.CreatedAt),
		Image:     c.GetImage().GetImage(),
		At:        at,
	}
}

// detail is what a status knows of a container and a list does not. It does not change while the container is in
// its state.
type detail struct {
	state             audit.ContainerState
	started, finished time.Time
	exitCode          int32
	reason, message   string
}

func detailOf(s *runtimeapi.ContainerStatus) detail {
	return detail{
		state: stateOf(s.State), started: nanoseconds(s.StartedAt), finished: nanoseconds(s.FinishedAt),
		exitCode: s.ExitCode, reason: cut(s.Reason), message: cut(s.Message),
	}
}

// maxText is how much of a message is kept. A kubelet keeps as much of a termination message.
const maxText = 4 << 10

// cut shortens a text, at the beginning of a character.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "")
}

// with returns a container with what its status knows.
func (d detail) with(c audit.Container) audit.Container {
	c.State, c.Started, c.Finished = d.state, d.started, d.finished
	c.ExitCode, c.Reason, c.Message = d.exitCode, d.reason, d.message
	return c
}

// attempt is the restart count, which the kubelet writes as an annotation.
func attempt(annotations map[string]string, otherwise uint32) uint32 {
	if n, err := strconv.ParseUint(annotations[restartCount], 10, 32); err == nil {
		return uint32(n)
	}
	return otherwise
}

func stateOf(s runtimeapi.ContainerState) audit.ContainerState {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return audit.ContainerCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return audit.ContainerRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return audit.ContainerExited
	}
	return audit.ContainerUnknown
}

// nanoseconds converts a time of the runtime; 0 means never.
func nanoseconds(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
