package journal

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// kind names a table, in memory and on disk.
type kind string

const (
	allocations      kind = "allocations"
	resizeConditions kind = "resize-conditions"
	finals           kind = "finals"
	terminations     kind = "terminations"
)

// recordKey names one record: a pod UID or container ID within its kind.
type recordKey struct {
	kind kind
	key  string
}

// change sets or, with a nil value, deletes one record.
type change struct {
	recordKey
	value any
}

// termination is an observed end of a container, with the pod it belonged to.
type termination struct {
	pod   types.UID
	state v1.ContainerStateTerminated
}

// tables is the state in memory. Values in it are never changed, only replaced, so that
// two tables may share them.
type tables struct {
	allocations      map[types.UID]podstatus.Allocation
	resizeConditions map[types.UID]podstatus.ResizeConditions
	finals           map[types.UID]podstatus.Final
	terminations     map[string]termination
	// containers lists, for each pod, the container IDs that have a termination, so that
	// a pod's terminations are found without looking at all others.
	containers map[types.UID]map[string]struct{}
}

func newTables() *tables {
	return &tables{
		allocations:      map[types.UID]podstatus.Allocation{},
		resizeConditions: map[types.UID]podstatus.ResizeConditions{},
		finals:           map[types.UID]podstatus.Final{},
		terminations:     map[string]termination{},
		containers:       map[types.UID]map[string]struct{}{},
	}
}

// clone shares the values, which are immutable.
func (t *tables) clone() *tables {
	c := newTables()
	maps.Copy(c.allocations, t.allocations)
	maps.Copy(c.resizeConditions, t.resizeConditions)
	maps.Copy(c.finals, t.finals)
	for id, ended := range t.terminations {
		c.setTermination(id, ended)
	}
	return c
}

// apply makes the change and returns its inverse.
func (t *tables) apply(c change) change {
	switch c.kind {
	case allocations:
		return replace(t.allocations, c)
	case resizeConditions:
		return replace(t.resizeConditions, c)
	case finals:
		return replace(t.finals, c)
	}
	before := change{recordKey: c.recordKey}
	if old, ok := t.terminations[c.key]; ok {
		before.value = old
		t.dropTermination(c.key, old)
	}
	if c.value != nil {
		t.setTermination(c.key, c.value.(termination))
	}
	return before
}

func replace[V any](table map[types.UID]V, c change) change {
	before := change{recordKey: c.recordKey}
	if old, ok := table[types.UID(c.key)]; ok {
		before.value = old
	}
	if c.value == nil {
		delete(table, types.UID(c.key))
	} else {
		table[types.UID(c.key)] = c.value.(V)
	}
	return before
}

func (t *tables) setTermination(id string, ended termination) {
	t.terminations[id] = ended
	if t.containers[ended.pod] == nil {
		t.containers[ended.pod] = map[string]struct{}{}
	}
	t.containers[ended.pod][id] = struct{}{}
}

func (t *tables) dropTermination(id string, ended termination) {
	delete(t.terminations, id)
	delete(t.containers[ended.pod], id)
	if len(t.containers[ended.pod]) == 0 {
		delete(t.containers, ended.pod)
	}
}

// value returns the record's value, or nil.
func (t *tables) value(k recordKey) any {
	uid := types.UID(k.key)
	switch k.kind {
	case allocations:
		return valueOf(t.allocations, uid)
	case resizeConditions:
		return valueOf(t.resizeConditions, uid)
	case finals:
		return valueOf(t.finals, uid)
	default:
		return valueOf(t.terminations, k.key)
	}
}

func valueOf[K comparable, V any](table map[K]V, key K) any {
	if v, ok := table[key]; ok {
		return v
	}
	return nil
}

// pods are the UIDs that any table knows.
func (t *tables) pods() map[types.UID]struct{} {
	pods := map[types.UID]struct{}{}
	addKeys(pods, t.allocations)
	addKeys(pods, t.resizeConditions)
	addKeys(pods, t.finals)
	addKeys(pods, t.containers)
	return pods
}

func addKeys[V any](pods map[types.UID]struct{}, table map[types.UID]V) {
	for uid := range table {
		pods[uid] = struct{}{}
	}
}
