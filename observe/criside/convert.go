package criside

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/observe"
)

// What the kubelet writes on sandboxes and containers.
const (
	labelPodUID        = "io.kubernetes.pod.uid"
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelContainerName = "io.kubernetes.container.name"
	restartCount       = "io.kubernetes.container.restartCount"
)

// sandboxOf returns what a list says of a sandbox.
func sandboxOf(s *runtimeapi.PodSandbox, at time.Time) observe.Sandbox {
	return observe.Sandbox{
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

// sandboxOfStatus returns what a status says of a sandbox.
func sandboxOfStatus(s *runtimeapi.PodSandboxStatus, at time.Time) observe.Sandbox {
	sandbox := sandboxOf(&runtimeapi.PodSandbox{Id: s.Id, Metadata: s.Metadata, State: s.State, CreatedAt: s.CreatedAt}, at)
	sandbox.IPs = addresses(s.GetNetwork())
	return sandbox
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

// containerOf returns what a list says of a container. Its pod is that of the labels, which the kubelet
// writes; a container of another program has none, and is of the pod of its sandbox.
func containerOf(c *runtimeapi.Container, sandbox observe.Sandbox, at time.Time) observe.Container {
	return observe.Container{
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

// fill adds what a status knows and a list does not.
func fill(c observe.Container, s *runtimeapi.ContainerStatus) observe.Container {
	c.State = stateOf(s.State)
	c.Started, c.Finished = nanoseconds(s.StartedAt), nanoseconds(s.FinishedAt)
	c.ExitCode, c.Reason, c.Message = s.ExitCode, s.Reason, s.Message
	return c
}

// attempt is the restart count, which the kubelet writes as an annotation.
func attempt(annotations map[string]string, otherwise uint32) uint32 {
	if n, err := strconv.ParseUint(annotations[restartCount], 10, 32); err == nil {
		return uint32(n)
	}
	return otherwise
}

func stateOf(s runtimeapi.ContainerState) observe.ContainerState {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return observe.ContainerCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return observe.ContainerRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return observe.ContainerExited
	}
	return observe.ContainerUnknown
}

// nanoseconds reads a time of the runtime, of which 0 means never.
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
