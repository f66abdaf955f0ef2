package status

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// Ends stores the final statuses of pods until the pods are gone: an API server that has a status may be restored from
// a backup that is older. Ends is the minimum that
// [Options.Journal] must implement. A journal stores more by implementing further interfaces:
// [TerminationJournal], [AllocationJournal], [ResizeJournal], [PodJournal], or all of them, [Journal].
// Each write must be durable when it returns. All methods may be called from any goroutine.
type Ends interface {
	// Finals returns the stored final statuses.
	Finals() map[types.UID]podstatus.Final
	// SetFinal stores the final status of a pod, replacing an earlier one. A final without a name deletes
	// the stored final; deleting a missing final is not an error.
	SetFinal(types.UID, podstatus.Final) error
}

// TerminationJournal stores the terminations of containers, by container ID, until the API server
// has them.
type TerminationJournal interface {
	Termination(containerID string) (v1.ContainerStateTerminated, bool)
	RecordTermination(pod types.UID, containerID string, how v1.ContainerStateTerminated) error
	// RetainTerminations deletes the terminations of a pod for whose container IDs the function
	// returns false.
	RetainTerminations(types.UID, func(containerID string) bool) error
}

// AllocationJournal stores the resources allocated to pods.
type AllocationJournal interface {
	GetPodAllocation(types.UID) (podstatus.Allocation, bool)
	GetContainerResourceAllocation(pod types.UID, container string) (v1.ResourceRequirements, bool)
	SetPodAllocation(types.UID, podstatus.Allocation) error
}

// ResizeJournal stores the resize conditions of pods with their transition times.
type ResizeJournal interface {
	AllResizeConditions() map[types.UID]podstatus.ResizeConditions
	SetResizeConditions(types.UID, podstatus.ResizeConditions) error
}

// PodJournal deletes everything about pods in one write.
type PodJournal interface {
	RemovePod(types.UID) error
	// RetainPods deletes the pods for which the function returns false.
	RetainPods(func(types.UID) bool) (removed int, err error)
}

// Journal is the whole durable memory of a manager. The implementations are in package journal.
type Journal interface {
	Ends
	TerminationJournal
	AllocationJournal
	ResizeJournal
	PodJournal
}

// wholeJournal returns a journal that keeps what this one can keep, and forgets the rest.
func wholeJournal(ends Ends) Journal {
	if ends == nil {
		return nil
	}
	if whole, ok := ends.(Journal); ok {
		return whole
	}
	j := partialJournal{Ends: ends, TerminationJournal: forgetful{}, AllocationJournal: forgetful{}, ResizeJournal: forgetful{}, PodJournal: endsOnly{ends}}
	if part, ok := ends.(TerminationJournal); ok {
		j.TerminationJournal = part
	}
	if part, ok := ends.(AllocationJournal); ok {
		j.AllocationJournal = part
	}
	if part, ok := ends.(ResizeJournal); ok {
		j.ResizeJournal = part
	}
	if part, ok := ends.(PodJournal); ok {
		j.PodJournal = part
	}
	return j
}

type partialJournal struct {
	Ends
	TerminationJournal
	AllocationJournal
	ResizeJournal
	PodJournal
}

// endsOnly removes pods from a journal that has nothing but their ends.
type endsOnly struct{ ends Ends }

func (j endsOnly) RemovePod(uid types.UID) error { return j.ends.SetFinal(uid, podstatus.Final{}) }

func (j endsOnly) RetainPods(keep func(types.UID) bool) (removed int, err error) {
	for uid := range j.ends.Finals() {
		if keep(uid) {
			continue
		}
		if err := j.ends.SetFinal(uid, podstatus.Final{}); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// forgetful is the part of a journal that is not there.
type forgetful struct{}

func (forgetful) Termination(string) (end v1.ContainerStateTerminated, ok bool) { return end, false }
func (forgetful) RecordTermination(types.UID, string, v1.ContainerStateTerminated) error {
	return nil
}
func (forgetful) RetainTerminations(types.UID, func(string) bool) error { return nil }

func (forgetful) GetPodAllocation(types.UID) (a podstatus.Allocation, ok bool) { return a, false }
func (forgetful) GetContainerResourceAllocation(types.UID, string) (r v1.ResourceRequirements, ok bool) {
	return r, false
}
func (forgetful) SetPodAllocation(types.UID, podstatus.Allocation) error { return nil }

func (forgetful) AllResizeConditions() map[types.UID]podstatus.ResizeConditions { return nil }
func (forgetful) SetResizeConditions(types.UID, podstatus.ResizeConditions) error {
	return nil
}
