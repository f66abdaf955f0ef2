package journal

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
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

func (e *edit) setContainer(pod types.UID, container string, resources v1.ResourceRequirements) {
	current := e.tables.allocations[pod]
	containers := maps.Clone(current.Containers)
	if containers == nil {
		containers = map[string]v1.ResourceRequirements{}
	}
	containers[container] = resources
	e.set(allocations, string(pod), podstatus.Allocation{Containers: containers, PodLevel: current.PodLevel})
}

func (e *edit) setAllAllocations(all map[types.UID]podstatus.Allocation) {
	for uid := range maps.Clone(e.tables.allocations) {
		if _, stays := all[uid]; !stays {
			e.drop(allocations, string(uid))
		}
	}
	for uid, allocation := range all {
		e.set(allocations, string(uid), allocation)
	}
}

func (e *edit) setResizeStatus(pod types.UID, status ResizeStatus) {
	if status == "" {
		e.drop(resizeStatuses, string(pod))
		return
	}
	e.set(resizeStatuses, string(pod), status)
}

func (e *edit) setAllResizeStatuses(all map[types.UID]ResizeStatus) {
	for uid := range maps.Clone(e.tables.resizeStatuses) {
		if _, stays := all[uid]; !stays {
			e.drop(resizeStatuses, string(uid))
		}
	}
	for uid, status := range all {
		e.setResizeStatus(uid, status)
	}
}

func (e *edit) deleteContainer(pod types.UID, container string) {
	current, ok := e.tables.allocations[pod]
	if _, has := current.Containers[container]; !ok || !has {
		return
	}
	if len(current.Containers) == 1 {
		e.deleteAllocation(pod)
		return
	}
	containers := maps.Clone(current.Containers)
	delete(containers, container)
	e.set(allocations, string(pod), podstatus.Allocation{Containers: containers, PodLevel: current.PodLevel})
}

func (e *edit) deleteAllocation(pod types.UID) {
	e.drop(allocations, string(pod))
	e.drop(resizeStatuses, string(pod))
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
	e.deleteAllocation(pod)
	e.drop(resizeConditions, string(pod))
	e.drop(finals, string(pod))
	e.deleteTerminations(pod)
}
