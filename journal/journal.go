package journal

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// Allocations are the resources that a node has allocated to its pods.
type Allocations interface {
	// GetContainerResourceAllocation returns the resources allocated to one container, and whether
	// there is an allocation.
	GetContainerResourceAllocation(podUID types.UID, container string) (v1.ResourceRequirements, bool)
	// GetPodAllocation returns the allocation of one pod, and whether there is one.
	GetPodAllocation(podUID types.UID) (podstatus.Allocation, bool)
	// AllAllocations returns the allocations of all pods.
	AllAllocations() map[types.UID]podstatus.Allocation
	// SetPodAllocation replaces the allocation of one pod.
	SetPodAllocation(podUID types.UID, allocation podstatus.Allocation) error
}

// Resizes are the resize conditions of pods, with their transition times.
type Resizes interface {
	// ResizeConditions returns the conditions of a pod, and whether it has any.
	ResizeConditions(podUID types.UID) (podstatus.ResizeConditions, bool)
	// AllResizeConditions returns the conditions of all pods.
	AllResizeConditions() map[types.UID]podstatus.ResizeConditions
	// SetResizeConditions replaces both conditions of a pod; the zero value deletes them.
	SetResizeConditions(podUID types.UID, conditions podstatus.ResizeConditions) error
}

// Finals are the final statuses that the API server has not accepted yet.
type Finals interface {
	// Finals returns the final statuses of all pods.
	Finals() map[types.UID]podstatus.Final
	// SetFinal sets the final status of a pod; a final without a pod name deletes it.
	SetFinal(podUID types.UID, final podstatus.Final) error
	// DeleteFinal deletes the final status of a pod.
	DeleteFinal(podUID types.UID) error
}

// Terminations are the observed terminations of containers, by container ID.
type Terminations interface {
	// Termination returns the recorded termination of a container, and whether there is one.
	Termination(containerID string) (v1.ContainerStateTerminated, bool)
	// RecordTermination records the termination of a container of the pod. A container belongs to
	// the pod that recorded it last.
	RecordTermination(podUID types.UID, containerID string, state v1.ContainerStateTerminated) error
	// RetainTerminations deletes the terminations of a pod for whose container IDs keep returns
	// false. If keep returns true for all, nothing is written.
	RetainTerminations(podUID types.UID, keep func(containerID string) bool) error
	// DeleteTerminations deletes all terminations of a pod.
	DeleteTerminations(podUID types.UID) error
}

// Journal is the whole interface of a journal. Consumers declare the part that they need.
type Journal interface {
	Allocations
	Resizes
	Finals
	Terminations
	// RemovePod deletes everything about a pod in one commit.
	RemovePod(podUID types.UID) error
	// RetainPods deletes, in one commit, every pod for which keep returns false, and
	// returns how many there were. keep runs in the caller's goroutine, once for each pod.
	RetainPods(keep func(podUID types.UID) bool) (removed int, err error)
	// Close makes later writes fail. A second Close does nothing.
	Close() error
}

var (
	_ Journal = (*Memory)(nil)
	_ Journal = (*Durable)(nil)
)

// The errors that callers can distinguish with errors.Is. Each error that wraps one of them
// is one line: what is wrong, where, and what to do.
var (
	// ErrInvalid: the arguments cannot be stored, e.g. an empty UID.
	ErrInvalid = errors.New("invalid argument")
	// ErrWrite: the write was not acknowledged and memory is as before. The cause is
	// wrapped too.
	ErrWrite = errors.New("write failed")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal is closed")
	// ErrNewerFormat: a newer statusd wrote the journal.
	ErrNewerFormat = errors.New("newer format")
	// ErrOldFormat: the files have format 1, a bbolt file, which cannot be read any more.
	ErrOldFormat = errors.New("old format")
	// ErrOtherNode: the journal belongs to a node of another name.
	ErrOtherNode = errors.New("journal of another node")
	// ErrInUse: another process has the journal open.
	ErrInUse = errors.New("in use by another process")
	// ErrReadOnly: the directory or filesystem is read-only.
	ErrReadOnly = errors.New("read-only")
	// ErrNoSpace: the disk, the quota or the file size limit is used up.
	ErrNoSpace = errors.New("no space left")
	// ErrPermission: a file of the journal is not readable and writable for this user.
	ErrPermission = errors.New("permission denied")
	// ErrDamaged: the data read differ from the data written.
	ErrDamaged = errors.New("damaged")
)
