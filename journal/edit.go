package journal

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// edit is a run of changes to tables that can be taken back: what a write means,
// without locks or disks. One edit serves all writes that share a commit, and a later
// one sees what an earlier one did.
type edit struct {
	tables  *tables
	changes []change
	undo    []change
}

func (e *edit) set(k kind, key string, value any) {
	c := change{recordKey{k, key}, value}
	e.changes = append(e.changes, c)
	e.undo = append(e.undo, e.tables.apply(c))
}

func (e *edit) drop(k kind, key string) {
	if e.tables.value(recordKey{k, key}) != nil {
		e.set(k, key, nil)
	}
}

// rollback puts the tables back to where the edit began.
func (e *edit) rollback() {
	for _, c := range slices.Backward(e.undo) {
		e.tables.apply(c)
	}
}

func (e *edit) setConditions(pod types.UID, conditions podstatus.ResizeConditions) {
	if conditions.Pending == nil && conditions.InProgress == nil {
		e.drop(resizeConditions, string(pod))
		return
	}
	e.set(resizeConditions, string(pod), conditions)
}

func (e *edit) deleteTerminations(pod types.UID) {
	for id := range maps.Clone(e.tables.containers[pod]) {
		e.drop(terminations, id)
	}
}

func (e *edit) dropTerminations(pod types.UID, ids []string) {
	for _, id := range ids {
		if _, its := e.tables.containers[pod][id]; its {
			e.drop(terminations, id)
		}
	}
}

func (e *edit) removePod(pod types.UID) {
	e.drop(allocations, string(pod))
	e.drop(resizeConditions, string(pod))
	e.drop(finals, string(pod))
	e.deleteTerminations(pod)
}
