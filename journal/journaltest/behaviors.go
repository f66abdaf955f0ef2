package journaltest

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// behavior is what a series of writes leaves.
type behavior struct {
	name string
	do   func(t *testing.T, j journal.Journal)
	want func() State
}

// fill stores everything about pod 1.
func fill(t *testing.T, j journal.Journal) {
	t.Helper()
	must(t, j.SetPodAllocation(UID(1), Allocation(1)))
	must(t, j.SetPodResizeStatus(UID(1), v1.PodResizeStatusDeferred))
	must(t, j.SetResizeConditions(UID(1), Conditions(1)))
	must(t, j.SetFinal(UID(1), Final(1)))
	must(t, j.RecordTermination(UID(1), ContainerID(1), Ended(1)))
}

func filled() State {
	return State{
		Allocations:    map[types.UID]podstatus.Allocation{UID(1): Allocation(1)},
		ResizeStatuses: map[types.UID]journal.ResizeStatus{UID(1): v1.PodResizeStatusDeferred},
		Conditions:     map[types.UID]podstatus.ResizeConditions{UID(1): Conditions(1)},
		Finals:         map[types.UID]podstatus.Final{UID(1): Final(1)},
		Terminations:   map[string]v1.ContainerStateTerminated{ContainerID(1): Ended(1)},
	}
}

// filledBut is filled with something changed.
func filledBut(change func(*State)) func() State {
	return func() State {
		s := filled()
		change(&s)
		return s
	}
}

func behaviors() []behavior {
	return []behavior{
		{"a new journal is empty", func(*testing.T, journal.Journal) {}, func() State { return State{} }},
		{"everything about a pod is kept", fill, filled},
		{"a container is set beside the others", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.SetContainerResourceAllocation(UID(1), "app", Resources(7)))
			must(t, j.SetContainerResourceAllocation(UID(2), "app", Resources(8)))
		}, filledBut(func(s *State) {
			s.Allocations[UID(1)].Containers["app"] = Resources(7)
			s.Allocations[UID(2)] = podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{"app": Resources(8)}}
		})},
		{"setting a pod replaces all of it", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.SetPodAllocation(UID(1), podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{"new": Resources(3)}}))
		}, filledBut(func(s *State) {
			s.Allocations[UID(1)] = podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{"new": Resources(3)}}
		})},
		{"setting all pods replaces all of them", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.ReplaceAllocations(map[types.UID]podstatus.Allocation{UID(2): Allocation(2), UID(3): Allocation(3)}))
			must(t, j.ReplaceResizeStatuses(map[types.UID]journal.ResizeStatus{UID(2): v1.PodResizeStatusInfeasible}))
		}, filledBut(func(s *State) {
			s.Allocations = map[types.UID]podstatus.Allocation{UID(2): Allocation(2), UID(3): Allocation(3)}
			s.ResizeStatuses = map[types.UID]journal.ResizeStatus{UID(2): v1.PodResizeStatusInfeasible}
		})},
		{"deleting a container leaves the others", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.Delete(UID(1), "sidecar"))
			must(t, j.Delete(UID(1), "unknown"))
			must(t, j.Delete(UID(9), "app"))
		}, filledBut(func(s *State) { delete(s.Allocations[UID(1)].Containers, "sidecar") })},
		{"deleting the last container deletes allocation and resize status", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.Delete(UID(1), "sidecar"))
			must(t, j.Delete(UID(1), "app"))
		}, filledBut(func(s *State) { s.Allocations, s.ResizeStatuses = nil, nil })},
		{"deleting a pod deletes allocation and resize status", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.Delete(UID(1), ""))
			must(t, j.Delete(UID(9), ""))
		}, filledBut(func(s *State) { s.Allocations, s.ResizeStatuses = nil, nil })},
		{"clearing forgets allocations and resize statuses only", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.ClearAllocations())
		}, filledBut(func(s *State) { s.Allocations, s.ResizeStatuses = nil, nil })},
		{"the empty resize status and no conditions delete", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.SetPodResizeStatus(UID(1), ""))
			must(t, j.SetResizeConditions(UID(1), podstatus.ResizeConditions{}))
		}, filledBut(func(s *State) { s.ResizeStatuses, s.Conditions = nil, nil })},
		{"one condition can go and the other stay", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.SetResizeConditions(UID(1), podstatus.ResizeConditions{InProgress: Conditions(1).InProgress}))
		}, filledBut(func(s *State) {
			s.Conditions[UID(1)] = podstatus.ResizeConditions{InProgress: Conditions(1).InProgress}
		})},
		{"a final is replaced and deleted", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.SetFinal(UID(1), Final(5)))
			must(t, j.SetFinal(UID(2), Final(2)))
			must(t, j.DeleteFinal(UID(2)))
			must(t, j.DeleteFinal(UID(9)))
		}, filledBut(func(s *State) { s.Finals[UID(1)] = Final(5) })},
		{"terminations go with their pod", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.RecordTermination(UID(1), ContainerID(2), Ended(2)))
			must(t, j.RecordTermination(UID(2), ContainerID(3), Ended(3)))
			must(t, j.DeleteTerminations(UID(1)))
			must(t, j.DeleteTerminations(UID(9)))
		}, filledBut(func(s *State) {
			s.Terminations = map[string]v1.ContainerStateTerminated{ContainerID(3): Ended(3)}
		})},
		{"terminations that are named are retained", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.RecordTermination(UID(1), ContainerID(2), Ended(2)))
			must(t, j.RecordTermination(UID(2), ContainerID(3), Ended(3)))
			must(t, j.RetainTerminations(UID(1), func(id string) bool { return id == ContainerID(2) }))
			must(t, j.RetainTerminations(UID(9), func(string) bool { return false }))
		}, filledBut(func(s *State) {
			s.Terminations = map[string]v1.ContainerStateTerminated{ContainerID(2): Ended(2), ContainerID(3): Ended(3)}
		})},
		{"a container belongs to the pod that recorded it last", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.RecordTermination(UID(2), ContainerID(1), Ended(4)))
			must(t, j.DeleteTerminations(UID(1)))
		}, filledBut(func(s *State) { s.Terminations[ContainerID(1)] = Ended(4) })},
		{"removing a pod forgets everything about it", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.SetPodAllocation(UID(2), Allocation(2)))
			must(t, j.RemovePod(UID(1)))
			must(t, j.RemovePod(UID(9)))
		}, func() State {
			return State{Allocations: map[types.UID]podstatus.Allocation{UID(2): Allocation(2)}}
		}},
	}
}

// writes has each write method once. On a journal that fill has filled each of them
// changes something.
func writes() []struct {
	name string
	do   func(journal.Journal) error
} {
	return []struct {
		name string
		do   func(journal.Journal) error
	}{
		{"SetContainerResourceAllocation", func(j journal.Journal) error {
			return j.SetContainerResourceAllocation(UID(1), "app", Resources(9))
		}},
		{"SetPodAllocation", func(j journal.Journal) error { return j.SetPodAllocation(UID(1), Allocation(9)) }},
		{"ReplaceAllocations", func(j journal.Journal) error {
			return j.ReplaceAllocations(map[types.UID]podstatus.Allocation{UID(2): Allocation(2)})
		}},
		{"SetPodResizeStatus", func(j journal.Journal) error {
			return j.SetPodResizeStatus(UID(1), v1.PodResizeStatusInfeasible)
		}},
		{"ReplaceResizeStatuses", func(j journal.Journal) error {
			return j.ReplaceResizeStatuses(map[types.UID]journal.ResizeStatus{UID(2): v1.PodResizeStatusDeferred})
		}},
		{"Delete, a container", func(j journal.Journal) error { return j.Delete(UID(1), "app") }},
		{"Delete, a pod", func(j journal.Journal) error { return j.Delete(UID(1), "") }},
		{"ClearAllocations", func(j journal.Journal) error { return j.ClearAllocations() }},
		{"SetResizeConditions", func(j journal.Journal) error { return j.SetResizeConditions(UID(1), Conditions(9)) }},
		{"SetFinal", func(j journal.Journal) error { return j.SetFinal(UID(1), Final(9)) }},
		{"DeleteFinal", func(j journal.Journal) error { return j.DeleteFinal(UID(1)) }},
		{"RecordTermination", func(j journal.Journal) error {
			return j.RecordTermination(UID(1), ContainerID(2), Ended(2))
		}},
		{"RetainTerminations", func(j journal.Journal) error {
			return j.RetainTerminations(UID(1), func(string) bool { return false })
		}},
		{"DeleteTerminations", func(j journal.Journal) error { return j.DeleteTerminations(UID(1)) }},
		{"RemovePod", func(j journal.Journal) error { return j.RemovePod(UID(1)) }},
		{"RetainPods", func(j journal.Journal) error {
			_, err := j.RetainPods(func(types.UID) bool { return false })
			return err
		}},
	}
}
