package runtime

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What some runtimes can do beside what each one must. A caller finds out by a type
// assertion; a runtime that does not implement one of these loses what its comment says.

// Runner is implemented by a runtime with background work, such as detecting exits and cleaning up.
// The agent calls Run before anything is started, and ends it last.
type Runner interface {
	// Run blocks until ctx ends. It may be called once.
	Run(ctx context.Context) error
}

// ProblemReporter is implemented by a runtime that can list problems that it cannot solve itself.
// The agent counts the problems in the metric statusd_runtime_problems.
type ProblemReporter interface {
	// Problems lists the problems, in order of their paths.
	Problems() []Problem
}

// Problem is a problem that a runtime cannot solve itself. It prevents no pod from running.
type Problem struct {
	// Path is the file or directory, or another name of the subject.
	Path string
	// Err is the error.
	Err error
	// Since is when this process first observed the problem.
	Since time.Time
}

// HostNetwork is implemented by a runtime whose containers may listen on ports of the machine
// itself, whatever the pod's spec. Without it, only hostPorts are ports of the machine.
type HostNetwork interface {
	// SharesHostNetwork reports whether each port of a container is a port of the machine.
	SharesHostNetwork() bool
}

// SharesHostNetwork reports whether each port of a container is a port of the machine.
func SharesHostNetwork(r Runtime) bool {
	h, ok := r.(HostNetwork)
	return ok && h.SharesHostNetwork()
}

// VolumeRemover is implemented by a runtime that can remove the volumes of an ended pod before the
// pod. Without it, volumes stay until RemovePod.
type VolumeRemover interface {
	// RemoveVolumes deletes the contents of the volumes that end with the pod. Logs and records
	// stay. RemoveVolumes fails while a container runs, and returns nil for an unknown pod or if
	// the volumes are removed already.
	RemoveVolumes(ctx context.Context, uid types.UID) error
}

// LogRemover is implemented by a runtime that can remove the logs of an ended pod before the pod.
// Without it, logs stay until RemovePod.
type LogRemover interface {
	// RemoveLogs deletes the logs of exited containers of the pod. Records stay. RemoveLogs returns
	// nil for an unknown pod or if the logs are removed already.
	RemoveLogs(ctx context.Context, uid types.UID) error
}

// Resizer is implemented by a runtime that can change the limits of a running container. Without
// it, such resizes are infeasible.
type Resizer interface {
	// ResizeContainer sets the requests and limits of a running container. Setting the current
	// values is not an error.
	ResizeContainer(ctx context.Context, id string, resources v1.ResourceRequirements) error
}

// Meter is implemented by a runtime that can measure the usage of pods. Without it, eviction cannot
// rank pods by usage.
type Meter interface {
	// PodUsage measures one pod now, which may take time: it reads the files of the pod. It returns
	// [ErrNotFound] for an unknown pod.
	PodUsage(ctx context.Context, uid types.UID) (Usage, error)
}

// Usage is the resource usage of a pod.
type Usage struct {
	// MemoryBytes is memory that cannot be reclaimed while the pod runs.
	MemoryBytes uint64
	// DiskBytes and Inodes are the usage of the logs, of the volumes that end with the pod, and of what containers write outside of volumes.
	DiskBytes uint64
	Inodes    uint64
	// Processes counts processes and their threads.
	Processes uint64
	// Containers are the shares of the running containers, by name.
	Containers map[string]ContainerUsage
	// VolumeBytes are the sizes of the volumes that end with the pod, by name.
	VolumeBytes map[string]uint64
}

// ContainerUsage is the resource usage of one container.
type ContainerUsage struct {
	MemoryBytes uint64
	// DiskBytes is the size of the container's logs, and of what it writes outside of volumes.
	DiskBytes uint64
}

// ImageStore is implemented by a runtime that stores container images. Without it, the Node lists no images, and images are not deleted when the
// disk is full.
type ImageStore interface {
	// Images lists the images for the Node's status, the largest first. It does not block.
	Images() []v1.ContainerImage
	// RemoveUnusedImages deletes the images that no container uses, because the disk is full.
	RemoveUnusedImages(ctx context.Context) error
}

// Gate is implemented by a runtime that can be unavailable as a whole, or that rejects some pods. Without it, the node accepts pods whenever the agent runs.
type Gate interface {
	// NotReady returns why no pod can be started now, or nil. The error is the message of the Node's Ready condition.
	// NotReady does not block.
	NotReady() error
	// Admit returns why the pod can never run on this node: the pod fails with the reason. An empty reason admits the pod.
	Admit(pod *v1.Pod) (reason, message string)
}
