package runtime

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What some runtimes can do beside what each one must. A caller finds out by a type
// assertion; a runtime that does not implement one of these loses what its comment says.

// Runner is implemented by a runtime that has work of its own: to notice the ends of
// containers, to clean up. The agent runs it before anything is started, and ends it last.
type Runner interface {
	// Run blocks until ctx ends. It may be called once.
	Run(ctx context.Context) error
}

// ProblemReporter is implemented by a runtime that can name what it cannot deal with by
// itself. The agent counts the problems in the metric statusd_runtime_problems.
type ProblemReporter interface {
	// Problems lists them, in order of their paths.
	Problems() []Problem
}

// Problem is something that a runtime cannot deal with by itself. It keeps no pod from
// running.
type Problem struct {
	// Path is the file or directory, or what else it is about.
	Path string
	// Err says what is wrong with it.
	Err error
	// Since is when this process first saw it.
	Since time.Time
}

// HostNetwork is implemented by a runtime whose containers may listen on ports of the
// machine itself, whatever the pod says. Without it, only hostPort is one.
type HostNetwork interface {
	// SharesHostNetwork reports whether each port of a container is a port of the machine.
	SharesHostNetwork() bool
}

// SharesHostNetwork reports whether each port of a container is a port of the machine.
func SharesHostNetwork(r Runtime) bool {
	h, ok := r.(HostNetwork)
	return ok && h.SharesHostNetwork()
}

// VolumeRemover is implemented by a runtime that can remove the volumes of a pod that has
// ended before the rest of it. Without it they stay until RemovePod.
type VolumeRemover interface {
	// RemoveVolumes deletes what the pod has written to volumes that end with it. Logs and
	// records stay. It is an error while a container runs, and none for an unknown pod or
	// if it was done before.
	RemoveVolumes(ctx context.Context, uid types.UID) error
}

// LogRemover is implemented by a runtime that can remove the logs of a pod that has ended
// before the rest of it. Without it they stay until RemovePod.
type LogRemover interface {
	// RemoveLogs deletes what containers of the pod that have exited have written. Records
	// stay. It is no error for an unknown pod or if it was done before.
	RemoveLogs(ctx context.Context, uid types.UID) error
}

// Resizer is implemented by a runtime that can change the limits of a running container.
// Without it, such a resize is infeasible.
type Resizer interface {
	// ResizeContainer makes requests and limits of a running container those given. To set
	// what is set already is no error.
	ResizeContainer(ctx context.Context, id string, resources v1.ResourceRequirements) error
}

// Meter is implemented by a runtime that can measure what pods use. Without it, a node
// under pressure cannot tell the pods apart by their usage.
type Meter interface {
	// PodUsage measures one pod now, which may take time: it reads the files of the pod. It
	// returns [ErrNotFound] for a pod that the runtime does not know.
	PodUsage(ctx context.Context, uid types.UID) (Usage, error)
}

// Usage is what a pod uses of the machine.
type Usage struct {
	// MemoryBytes is memory that cannot be reclaimed while the pod runs.
	MemoryBytes uint64
	// DiskBytes and Inodes are those of its volumes that end with it and of its logs.
	DiskBytes uint64
	Inodes    uint64
	// Processes counts processes and their threads.
	Processes uint64
	// Containers are the shares of the containers that run, by name.
	Containers map[string]ContainerUsage
	// VolumeBytes are the sizes of the volumes that end with the pod, by name.
	VolumeBytes map[string]uint64
}

// ContainerUsage is what one container uses.
type ContainerUsage struct {
	MemoryBytes uint64
	// DiskBytes is the size of its logs.
	DiskBytes uint64
}

// ImageStore is implemented by a runtime that keeps images of containers. Without it, the Node lists none, and a full disk is not freed of them.
type ImageStore interface {
	// Images lists what the Node should show of the images, the largest first. It does not block.
	Images() []v1.ContainerImage
	// RemoveUnusedImages deletes the images that no container uses, because the disk is full.
	RemoveUnusedImages(ctx context.Context) error
}

// Gate is implemented by a runtime that can be out of order as a whole, or that no pod may ask for some things. Without it, the node takes pods whenever the
// agent runs.
type Gate interface {
	// NotReady is why no pod can be started now, nil if pods can: the Node is not ready with this message. It does not block.
	NotReady() error
	// Admit is why the pod must not run on this node at all, whatever happens later: it fails with the reason. An empty reason admits it.
	Admit(pod *v1.Pod) (reason, message string)
}
