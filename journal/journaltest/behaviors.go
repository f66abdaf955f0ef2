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
	must(t, j.SetResizeConditions(UID(1), Conditions(1)))
	must(t, j.SetFinal(UID(1), Final(1)))
	must(t, j.RecordTermination(UID(1), ContainerID(1), Ended(1)))
}

func filled() State {
	return State{
		Allocations:  map[types.UID]podstatus.Allocation{UID(1): Allocation(1)},
		Conditions:   map[types.UID]podstatus.ResizeConditions{UID(1): Conditions(1)},
		Finals:       map[types.UID]podstatus.Final{UID(1): Final(1)},
		Terminations: map[string]v1.ContainerStateTerminated{ContainerID(1): Ended(1)},
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
		{"setting a pod replaces all of it", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.SetPodAllocation(UID(1), podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{"new": Resources(3)}}))
		}, filledBut(func(s *State) {
			s.Allocations[UID(1)] = podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{"new": Resources(3)}}
		})},
		{"no conditions delete", func(t *testing.T, j journal.Journal) {
			fill(t, j)
			must(t, j.SetResizeConditions(UID(1), podstatus.ResizeConditions{}))
		}, filledBut(func(s *State) { s.Conditions = nil })},
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
			must(t, j.SetFinal(UID(3), Final(3)))
			must(t, j.SetFinal(UID(3), podstatus.Final{}))
			must(t, j.SetFinal(UID(9), podstatus.Final{}))
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
		{"SetPodAllocation", func(j journal.Journal) error { return j.SetPodAllocation(UID(1), Allocation(9)) }},
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
