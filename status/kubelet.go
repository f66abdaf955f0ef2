package status

import (
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// The methods in this file have the names and meanings of the methods of the kubelet's status
// manager. Unlike the kubelet's, they return errors, and returned values belong to the caller.

// SetPodStatus stores the status of a pod, and sends it if it differs from the previously stored
// status. The arguments are copied and not modified. SetPodStatus reports whether the status
// changed.
//
// If nothing of the status is stored, the error is an [*InvalidStatusError], which names an invalid
// field, or a [*podstatus.TransitionError], which names a container that had terminated for good and is
// no longer terminated. If the status is stored and sent except for a part, the error is a [*Warning]: a
// Succeeded or Failed pod keeps its phase ([*PhaseError]), a pod ends while containers could run
// ([*WithheldError]), or a final status could not be written to the journal.
//
// A pod without a UID is looked up by name in the manager's own table; without a match, the error is
// [ErrNoUID]. With its own table, the manager returns [ErrUnknownPod] if the table has a later pod of the
// same name, or if within the last 10 minutes the pod was proven gone from the API server; repeating the last
// report of such a pod is not an error.
func (m *Manager) SetPodStatus(pod *v1.Pod, status v1.PodStatus) (changed bool, err error) {
	if pod.UID == "" {
		if pod, err = m.identify(pod); err != nil {
			return false, err
		}
	}
	old := m.cache.load(pod.UID)
	if old == nil {
		old = m.gone.get(pod.UID, time.Now())
	}
	forced := pod.DeletionTimestamp != nil // U3
	if old != nil && !forced && m.owns.Unchanged(pod, &old.status, &status) && phaseError(&old.status, &status) == nil {
		return false, warning(m.withheld(pod, old))
	}
	return m.set(pod, status, forced)
}

// SetContainerReadiness records a readiness result for a container, and updates the conditions that
// depend on it.
func (m *Manager) SetContainerReadiness(uid types.UID, containerID string, ready bool) error {
	return m.flip("SetContainerReadiness", uid, containerID, ready, m.withContainerReady)
}

// SetContainerStartup records whether a container has started.
func (m *Manager) SetContainerStartup(uid types.UID, containerID string, started bool) error {
	return m.flip("SetContainerStartup", uid, containerID, started, podrules.WithContainerStarted)
}

// TerminatePod records that the pod has ended and its status will not change any more: once the API server
// has its last status, the pod may be deleted there. Containers whose end was not observed are reported
// with ContainerStatusUnknown; a pod that is not static becomes Failed unless it has a terminal phase
// already. If the journal could not be written, the error is a [*Warning]. For a pod that is proven gone
// from the API server, TerminatePod does nothing.
func (m *Manager) TerminatePod(pod *v1.Pod) error {
	pod, err := m.identify(pod)
	if err != nil {
		return err
	}
	var observed func(string) (v1.ContainerStateTerminated, bool)
	if m.opts.Journal != nil {
		observed = func(containerID string) (v1.ContainerStateTerminated, bool) {
			if how, ok := m.ends.find(pod.UID, containerID); ok {
				return how, true
			}
			return m.opts.Journal.Termination(containerID)
		}
	}
	_, err = m.store(pod, storing{by: "TerminatePod", forced: true, finish: true}, func(old *v1.PodStatus, cached bool) (v1.PodStatus, error) {
		status := old
		if !cached {
			status = &pod.Status // K1: not the mirror's
		}
		ended := podrules.Terminate(pod, status, observed)
		return m.owns.Next(pod, old, &ended, time.Now()), nil
	})
	return err
}

// RemoveOrphanedStatuses forgets the pods that are not keys of the map.
func (m *Manager) RemoveOrphanedStatuses(pods map[types.UID]bool) {
	known := maps.Clone(pods) // which the journal may look at later
	m.retain(func(uid types.UID) bool {
		_, ok := known[uid]
		return ok
	})
}

// GetPodStatus returns a copy of the newest status of a pod. The UID of a mirror pod
// stands for its static pod.
func (m *Manager) GetPodStatus(uid types.UID) (v1.PodStatus, bool) {
	s := m.cache.load(m.opts.Pods.TranslateUID(uid))
	if s == nil {
		return v1.PodStatus{}, false
	}
	return *s.status.DeepCopy(), true
}

// SetPodAllocation stores the resources in the pod's spec as the allocation of the pod. The
// allocation is on disk when SetPodAllocation returns; if the write fails, the previous allocation
// stays. Without a journal nothing is stored and the error is nil: the resources in the spec apply.
// A manager with its own table returns [ErrUnknownPod] for a pod that was neither observed nor
// reported.
func (m *Manager) SetPodAllocation(pod *v1.Pod) error {
	if m.opts.Journal == nil {
		return nil
	}
	pod, err := m.identify(pod)
	if err != nil {
		return err
	}
	if !m.knows(pod.UID) {
		return fmt.Errorf("allocation of pod %s/%s: %w", pod.Namespace, pod.Name, ErrUnknownPod)
	}
	allocation := podstatus.AllocationOf(pod)
	return m.writeThrough("store allocation", pod.UID, func() error { return m.opts.Journal.SetPodAllocation(pod.UID, allocation) })
}

// GetContainerResourceAllocation returns the resources allocated to a container.
func (m *Manager) GetContainerResourceAllocation(uid types.UID, container string) (v1.ResourceRequirements, bool) {
	if m.opts.Journal == nil {
		return v1.ResourceRequirements{}, false
	}
	return m.opts.Journal.GetContainerResourceAllocation(m.opts.Pods.TranslateUID(uid), container)
}
