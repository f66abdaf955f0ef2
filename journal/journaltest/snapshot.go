package journaltest

import (
	"encoding/json"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/podstatus"
)

// State is the whole readable state of a journal. Terminations cannot be listed, so they are read
// for the given containers.
type State struct {
	Allocations  map[types.UID]podstatus.Allocation
	Conditions   map[types.UID]podstatus.ResizeConditions
	Finals       map[types.UID]podstatus.Final
	Terminations map[string]v1.ContainerStateTerminated
}

// Read returns the state of the journal.
func Read(j journal.Journal, containerIDs ...string) State {
	s := State{
		Allocations:  j.AllAllocations(),
		Conditions:   j.AllResizeConditions(),
		Finals:       j.Finals(),
		Terminations: map[string]v1.ContainerStateTerminated{},
	}
	for _, id := range containerIDs {
		if ended, ok := j.Termination(id); ok {
			s.Terminations[id] = ended
		}
	}
	return s
}

// Equal compares values semantically, as the API does.
func Equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// want fails the test if got is not wanted.
func want(t *testing.T, story string, got, wanted any) {
	t.Helper()
	if !Equal(got, wanted) {
		t.Errorf("%s:\n got %s\nwant %s", story, show(got), show(wanted))
	}
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
