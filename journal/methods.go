package journal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// maxKey bounds UIDs, container names and container IDs; real ones are far shorter.
const maxKey = 1024

// methods are the reads and writes that Memory and Durable share. They differ in submit.
type methods struct {
	mu        sync.RWMutex // guards published
	published *tables      // what readers see: acknowledged, or about to be
	// submit runs the write and publishes it, or returns an error and changes nothing.
	submit func(write func(*edit)) error
}

// GetContainerResourceAllocation returns the resources allocated to one container, and whether
// there is an allocation.
func (m *methods) GetContainerResourceAllocation(podUID types.UID, container string) (v1.ResourceRequirements, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	resources, ok := m.published.allocations[podUID].Containers[container]
	return *resources.DeepCopy(), ok
}

// GetPodAllocation returns the allocation of one pod, and whether there is one.
func (m *methods) GetPodAllocation(podUID types.UID) (podstatus.Allocation, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	allocation, ok := m.published.allocations[podUID]
	return copyAllocation(allocation), ok
}

// AllAllocations returns the allocations of all pods.
func (m *methods) AllAllocations() map[types.UID]podstatus.Allocation {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return copyTable(m.published.allocations, copyAllocation)
}

// ResizeConditions returns the conditions of a pod, and whether it has any.
func (m *methods) ResizeConditions(podUID types.UID) (podstatus.ResizeConditions, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	conditions, ok := m.published.resizeConditions[podUID]
	return copyConditions(conditions), ok
}

// AllResizeConditions returns the conditions of all pods.
func (m *methods) AllResizeConditions() map[types.UID]podstatus.ResizeConditions {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return copyTable(m.published.resizeConditions, copyConditions)
}

// Finals returns the final statuses of all pods.
func (m *methods) Finals() map[types.UID]podstatus.Final {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return copyTable(m.published.finals, copyFinal)
}

// Termination returns the recorded termination of a container, and whether there is one.
func (m *methods) Termination(containerID string) (v1.ContainerStateTerminated, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	ended, ok := m.published.terminations[containerID]
	return *ended.state.DeepCopy(), ok
}

// SetPodAllocation replaces the allocation of one pod.
func (m *methods) SetPodAllocation(podUID types.UID, allocation podstatus.Allocation) error {
	if err := checkKeys(string(podUID)); err != nil {
		return err
	}
	allocation = copyAllocation(allocation)
	return m.submit(func(e *edit) { e.set(allocations, string(podUID), allocation) })
}

// SetResizeConditions replaces both conditions of a pod; the zero value deletes them.
func (m *methods) SetResizeConditions(podUID types.UID, conditions podstatus.ResizeConditions) error {
	if err := checkKeys(string(podUID)); err != nil {
		return err
	}
	conditions = copyConditions(conditions)
	return m.submit(func(e *edit) { e.setConditions(podUID, conditions) })
}

// SetFinal sets the final status of a pod; a final without a pod name deletes it.
func (m *methods) SetFinal(podUID types.UID, final podstatus.Final) error {
	if err := checkKeys(string(podUID)); err != nil {
		return err
	}
	if final.Name == "" {
		return m.DeleteFinal(podUID)
	}
	final = copyFinal(final)
	return m.submit(func(e *edit) { e.set(finals, string(podUID), final) })
}

// DeleteFinal deletes the final status of a pod.
func (m *methods) DeleteFinal(podUID types.UID) error {
	return m.submit(func(e *edit) { e.drop(finals, string(podUID)) })
}

// RecordTermination records the termination of a container of the pod. A container belongs to the
// pod that recorded it last.
func (m *methods) RecordTermination(podUID types.UID, containerID string, state v1.ContainerStateTerminated) error {
	if err := checkKeys(string(podUID), containerID); err != nil {
		return err
	}
	ended := termination{pod: podUID, state: *state.DeepCopy()}
	return m.submit(func(e *edit) { e.set(terminations, containerID, ended) })
}

// RetainTerminations deletes the terminations of a pod for whose container IDs keep returns false.
// If keep returns true for all, nothing is written.
func (m *methods) RetainTerminations(podUID types.UID, keep func(containerID string) bool) error {
	m.mu.RLock()
	ids := slices.Collect(maps.Keys(m.published.containers[podUID]))
	m.mu.RUnlock()
	ids = slices.DeleteFunc(ids, keep) // no lock is held: keep belongs to the caller
	if len(ids) == 0 {
		return nil
	}
	return m.submit(func(e *edit) { e.dropTerminations(podUID, ids) })
}

// DeleteTerminations deletes all terminations of a pod.
func (m *methods) DeleteTerminations(podUID types.UID) error {
	return m.submit(func(e *edit) { e.deleteTerminations(podUID) })
}

// RemovePod deletes everything about a pod in one commit.
func (m *methods) RemovePod(podUID types.UID) error {
	return m.submit(func(e *edit) { e.removePod(podUID) })
}

// RetainPods deletes, in one commit, every pod for which keep returns false, and
// returns how many there were. keep runs in the caller's goroutine, once for each pod.
func (m *methods) RetainPods(keep func(podUID types.UID) bool) (removed int, err error) {
	m.mu.RLock()
	pods := m.published.pods()
	m.mu.RUnlock()
	// keep belongs to the caller and may call back: no lock is held, and a pod that is
	// added meanwhile is not in the list and stays.
	maps.DeleteFunc(pods, func(uid types.UID, _ struct{}) bool { return keep(uid) })
	if len(pods) == 0 {
		return 0, nil
	}
	err = m.submit(func(e *edit) {
		for uid := range pods {
			e.removePod(uid)
		}
	})
	if err != nil {
		return 0, err
	}
	return len(pods), nil
}

func checkKeys(keys ...string) error {
	for _, key := range keys {
		if key == "" {
			return fmt.Errorf("journal: %w: a pod UID, container name or container ID is empty", ErrInvalid)
		}
		if strings.Contains(key, "\x00") { // so that no sector of the log can be all zeros
			return fmt.Errorf("journal: %w: the key %.40q has a zero byte", ErrInvalid, key)
		}
		if len(key) > maxKey {
			return fmt.Errorf("journal: %w: the key %.40q... has %d bytes, the limit is %d", ErrInvalid, key, len(key), maxKey)
		}
	}
	return nil
}
