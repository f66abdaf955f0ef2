package journaltest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// Subject is a journal under test.
type Subject struct {
	// New returns an empty journal. The suite closes it.
	New func(t *testing.T) journal.Journal
	// Reopen closes the journal and opens it again; nil if it does not outlive its process.
	Reopen func(t *testing.T, j journal.Journal) journal.Journal
	// Fail switches failing writes on or off; nil if the journal never fails.
	Fail func(j journal.Journal, fail bool)
}

// Run runs the suite.
func Run(t *testing.T, subject Subject) {
	for _, b := range behaviors() {
		t.Run(b.name, func(t *testing.T) { subject.behaves(t, b) })
	}
	t.Run("nothing is aliased", subject.copies)
	t.Run("retaining asks once a pod and counts", subject.retains)
	t.Run("invalid keys are refused", subject.refuses)
	t.Run("concurrent writers all find their writes", subject.concurrent)
	t.Run("after closing reads answer and writes do not", subject.closes)
	if subject.Fail != nil {
		t.Run("a failed write changes nothing and can be repeated", subject.fails)
	}
}

func (s Subject) open(t *testing.T) journal.Journal {
	t.Helper()
	j := s.New(t)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}

// behaves checks the result in the running journal and again after reopening.
func (s Subject) behaves(t *testing.T, b behavior) {
	j := s.open(t)
	b.do(t, j)
	containers := []string{ContainerID(1), ContainerID(2), ContainerID(3)}
	want(t, b.name, Read(j, containers...), b.want())
	if s.Reopen == nil {
		return
	}
	j = s.Reopen(t, j)
	t.Cleanup(func() { must(t, j.Close()) })
	want(t, b.name+", after reopening", Read(j, containers...), b.want())
}

// copies changes whatever was passed in and handed out, and looks for traces.
func (s Subject) copies(t *testing.T) {
	j := s.open(t)
	fill(t, j)
	wanted := Read(j, ContainerID(1))

	allocation, conditions, final := Allocation(1), Conditions(1), Final(1)
	must(t, j.SetPodAllocation(UID(1), allocation))
	must(t, j.SetResizeConditions(UID(1), conditions))
	must(t, j.SetFinal(UID(1), final))
	spoil(&allocation, &conditions, &final)
	want(t, "values passed in were changed afterwards", Read(j, ContainerID(1)), wanted)

	handed := Read(j, ContainerID(1))
	allocation, conditions, final = handed.Allocations[UID(1)], handed.Conditions[UID(1)], handed.Finals[UID(1)]
	spoil(&allocation, &conditions, &final)
	clear(handed.Allocations)
	clear(handed.Finals)
	clear(handed.Conditions)
	one, _ := j.GetPodAllocation(UID(1))
	delete(one.Containers, "app")
	resources, _ := j.GetContainerResourceAllocation(UID(1), "app")
	clear(resources.Requests)
	single, _ := j.ResizeConditions(UID(1))
	single.Pending.Reason = "spoiled"
	want(t, "values handed out were changed", Read(j, ContainerID(1)), wanted)
}

func spoil(allocation *podstatus.Allocation, conditions *podstatus.ResizeConditions, final *podstatus.Final) {
	clear(allocation.Containers["app"].Requests)
	delete(allocation.Containers, "sidecar")
	clear(allocation.PodLevel.Limits)
	conditions.Pending.Reason, conditions.InProgress.Reason = "spoiled", "spoiled"
	final.Status.Conditions[0].Status = v1.ConditionTrue
	final.Status.ContainerStatuses[0].State.Terminated.ExitCode = 99
}

func (s Subject) retains(t *testing.T) {
	j := s.open(t)
	for n := range 4 {
		must(t, j.SetPodAllocation(UID(n), Allocation(n)))
		must(t, j.SetFinal(UID(n), Final(n)))
	}
	must(t, j.RecordTermination(UID(4), ContainerID(4), Ended(4)))
	var asked []types.UID
	removed, err := j.RetainPods(func(uid types.UID) bool {
		asked = append(asked, uid)
		return uid == UID(1) || uid == UID(3)
	})
	must(t, err)
	if removed != 3 {
		t.Errorf("RetainPods kept 2 of 5 pods and says that it removed %d, want 3", removed)
	}
	slices.Sort(asked)
	want(t, "pods that RetainPods asked about", asked, []types.UID{UID(0), UID(1), UID(2), UID(3), UID(4)})
	want(t, "what RetainPods kept", Read(j, ContainerID(4)), State{
		Allocations: map[types.UID]podstatus.Allocation{UID(1): Allocation(1), UID(3): Allocation(3)},
		Finals:      map[types.UID]podstatus.Final{UID(1): Final(1), UID(3): Final(3)},
	})
	removed, err = j.RetainPods(func(types.UID) bool { return true })
	must(t, err)
	if removed != 0 {
		t.Errorf("RetainPods kept every pod and says that it removed %d, want 0", removed)
	}
}

func (s Subject) refuses(t *testing.T) {
	j := s.open(t)
	for name, err := range map[string]error{
		"SetPodAllocation":    j.SetPodAllocation("", Allocation(1)),
		"SetResizeConditions": j.SetResizeConditions("", Conditions(1)),
		"SetFinal":            j.SetFinal("", Final(1)),
		"RecordTermination":   j.RecordTermination(UID(1), "", Ended(1)),
	} {
		if !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("%s with an empty key: got %v, want ErrInvalid", name, err)
		}
	}
	want(t, "after refused writes", Read(j), State{})
}

func (s Subject) concurrent(t *testing.T) {
	const writers, each = 8, 20
	j := s.open(t)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				n := w*each + i
				must(t, j.SetPodAllocation(UID(n), Allocation(n)))
				if got, ok := j.GetPodAllocation(UID(n)); !ok || !Equal(got, Allocation(n)) {
					t.Errorf("writer %d does not read the write that was just acknowledged: got %s (found %t)", w, show(got), ok)
				}
			}
		})
	}
	group.Wait()
	wanted := map[types.UID]podstatus.Allocation{}
	for n := range writers * each {
		wanted[UID(n)] = Allocation(n)
	}
	want(t, "after concurrent writers", j.AllAllocations(), wanted)
}

func (s Subject) closes(t *testing.T) {
	j := s.New(t)
	fill(t, j)
	before := Read(j, ContainerID(1))
	must(t, j.Close())
	must(t, j.Close())
	for _, w := range writes() {
		if err := w.do(j); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s on a closed journal: got %v, want ErrClosed", w.name, err)
		}
	}
	want(t, "a closed journal", Read(j, ContainerID(1)), before)
}

func (s Subject) fails(t *testing.T) {
	for _, w := range writes() {
		j := s.open(t)
		fill(t, j)
		before := Read(j, ContainerID(1), ContainerID(2))
		s.Fail(j, true)
		if err := w.do(j); !errors.Is(err, journal.ErrWrite) {
			t.Errorf("%s on a failing journal: got %v, want ErrWrite", w.name, err)
		}
		want(t, "after a failed "+w.name, Read(j, ContainerID(1), ContainerID(2)), before)
		s.Fail(j, false)
		if err := w.do(j); err != nil {
			t.Errorf("%s again, on a journal that has recovered: %v", w.name, err)
		}
		if Equal(Read(j, ContainerID(1), ContainerID(2)), before) {
			t.Errorf("%s again, on a journal that has recovered: nothing changed", w.name)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
