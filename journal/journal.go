package journal

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// ResizeStatus is the API's type under a name of ours. The API deprecates it in favour of
// conditions, and agents that embed the manager still ask for it.
//
//lint:ignore SA1019 this is the one place that names it
type ResizeStatus = v1.PodResizeStatus

// Allocations are the resources that a node has set aside for its pods.
type Allocations interface {
	// GetContainerResourceAllocation returns what is set aside for one container.
	GetContainerResourceAllocation(podUID types.UID, container string) (v1.ResourceRequirements, bool)
	// GetPodAllocation returns what is set aside for one pod.
	GetPodAllocation(podUID types.UID) (podstatus.Allocation, bool)
	// GetPodResourceAllocation returns a snapshot of all allocations.
	GetPodResourceAllocation() map[types.UID]podstatus.Allocation
	// GetPodResizeStatus returns the resize status of a pod; false if it has none.
	GetPodResizeStatus(podUID types.UID) (ResizeStatus, bool)
	// GetResizeStatus returns a snapshot of all resize statuses.
	GetResizeStatus() map[types.UID]ResizeStatus

	// SetContainerResourceAllocation sets one container's share and leaves the others.
	SetContainerResourceAllocation(podUID types.UID, container string, resources v1.ResourceRequirements) error
	// SetPodAllocation replaces all of one pod in one commit.
	SetPodAllocation(podUID types.UID, allocation podstatus.Allocation) error
	// SetPodResourceAllocation replaces the allocations of all pods in one commit.
	SetPodResourceAllocation(allocations map[types.UID]podstatus.Allocation) error
	// SetPodResizeStatus sets the resize status of a pod; the empty one deletes it.
	SetPodResizeStatus(podUID types.UID, status ResizeStatus) error
	// SetResizeStatus replaces the resize statuses of all pods in one commit.
	SetResizeStatus(statuses map[types.UID]ResizeStatus) error
	// Delete forgets one container, or with an empty name the whole pod. With the last
	// container the pod's allocation and resize status go as well.
	Delete(podUID types.UID, container string) error
	// ClearState forgets all allocations and resize statuses, and nothing else.
	ClearState() error
}

// Resizes are the resize conditions of pods, with their transition times.
type Resizes interface {
	ResizeConditions(podUID types.UID) (podstatus.ResizeConditions, bool)
	AllResizeConditions() map[types.UID]podstatus.ResizeConditions
	// SetResizeConditions replaces both conditions of a pod; the zero value deletes them.
	SetResizeConditions(podUID types.UID, conditions podstatus.ResizeConditions) error
}

// Finals are the final statuses that the API server has not accepted yet.
type Finals interface {
	Finals() map[types.UID]podstatus.Final
	SetFinal(podUID types.UID, final podstatus.Final) error
	DeleteFinal(podUID types.UID) error
}

// Terminations are the ends of containers that were observed, by container ID.
type Terminations interface {
	Termination(containerID string) (v1.ContainerStateTerminated, bool)
	// RecordTermination remembers how a container of the pod ended. A container belongs
	// to the pod that recorded it last.
	RecordTermination(podUID types.UID, containerID string, state v1.ContainerStateTerminated) error
	// RetainTerminations forgets the terminations of a pod whose container IDs the function
	// does not name. If there is none, nothing is written.
	RetainTerminations(podUID types.UID, keep func(containerID string) bool) error
	// DeleteTerminations forgets all terminations of a pod.
	DeleteTerminations(podUID types.UID) error
}

// Journal is all of it. Consumers declare the part that they need.
type Journal interface {
	Allocations
	Resizes
	Finals
	Terminations
	// RemovePod forgets everything about a pod in one commit.
	RemovePod(podUID types.UID) error
	// RetainPods forgets, in one commit, every pod for which keep says false, and returns
	// how many those were. keep runs in the caller's goroutine, once a pod.
	RetainPods(keep func(podUID types.UID) bool) (removed int, err error)
	// Close ends writing. The second Close does nothing.
	Close() error
}

var (
	_ Journal = Noop{}
	_ Journal = (*Memory)(nil)
	_ Journal = (*Durable)(nil)
)

// What a caller can decide on. Each error that wraps one of them is one line that says what
// is wrong, where, and what to do.
var (
	// ErrInvalid: the arguments cannot be stored, e.g. an empty UID.
	ErrInvalid = errors.New("invalid argument")
	// ErrWrite: the write was not acknowledged and memory is as before.
	ErrWrite = errors.New("write failed")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal is closed")
	// ErrNewerFormat: a newer statusd wrote the journal.
	ErrNewerFormat = errors.New("newer format")
	// ErrOldFormat: the files are those of a format that cannot be read any more.
	ErrOldFormat = errors.New("old format")
	// ErrOtherNode: the journal belongs to a node of another name.
	ErrOtherNode = errors.New("journal of another node")
	// ErrInUse: another process has the journal open.
	ErrInUse = errors.New("in use by another process")
	// ErrReadOnly: the directory or filesystem takes no writes.
	ErrReadOnly = errors.New("read-only")
	// ErrNoSpace: the disk, the quota or the file size limit is used up.
	ErrNoSpace = errors.New("no space left")
	// ErrPermission: a file of the journal belongs to somebody else.
	ErrPermission = errors.New("permission denied")
	// ErrDamaged: what was read is not what was written.
	ErrDamaged = errors.New("damaged")
)
