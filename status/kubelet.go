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

// The methods in this file have the names that the kubelet's status manager gives them, for people
// who come from there, and mean the same. Unlike there, they return errors, and what they return is
// the caller's.

// SetPodStatus stores the status of a pod, and has it sent if it differs from the one that was
// stored before. Nothing of what is passed in is kept or changed. It
// reports whether there was a difference.
//
// If nothing of the status is stored, the error says why: an [*InvalidStatusError] names a field that
// no pod can have, a [*podstatus.TransitionError] a container that had ended for good and is alive
// again. If the status is stored and sent but for a part, the error is a [*Warning]: a pod that has
// Succeeded or Failed stays so ([*PhaseError]), a pod ends while containers could run ([*WithheldError]),
// or a final status could not be written to the journal.
//
// A pod without a UID is found by its name in the manager's own table, and otherwise refused ([ErrNoUID]).
// With that table, a pod is refused ([ErrUnknownPod]) if the table has a later pod of its name, or if the API
// server has proven within the last 10 minutes not to have it; repeating its last report is no error.
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

// SetContainerReadiness records a readiness result for a container, with the conditions
// that follow from it.
func (m *Manager) SetContainerReadiness(uid types.UID, containerID string, ready bool) error {
	return m.flip("SetContainerReadiness", uid, containerID, ready, m.withContainerReady)
}

// SetContainerStartup records whether a container has started.
func (m *Manager) SetContainerStartup(uid types.UID, containerID string, started bool) error {
	return m.flip("SetContainerStartup", uid, containerID, started, podrules.WithContainerStarted)
}

// TerminatePod records that the pod has ended and that nothing of it will change any more: once
// the API server has its last status, the pod may be deleted there. Containers whose end was not
// observed are reported as such; a pod that is not static becomes Failed unless it has
// a terminal phase already. If the journal could not be written, the error is a [*Warning]. For a pod that
// the API server has proven not to have, there is nothing to be done.
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

// RemoveOrphanedStatuses forgets the pods that are not in the map; the values do not matter.
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

// SetPodAllocation stores the resources of the pod's spec as those set aside for it. They
// are on disk when it returns; if they could not be written, what was stored before stays.
// Without a journal nothing is stored, which is no error: the spec says what the pod has. A
// manager with a table of its own refuses it with [ErrUnknownPod] for a pod that was neither
// observed nor reported.
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

// GetContainerResourceAllocation returns the resources set aside for a container.
func (m *Manager) GetContainerResourceAllocation(uid types.UID, container string) (v1.ResourceRequirements, bool) {
	if m.opts.Journal == nil {
		return v1.ResourceRequirements{}, false
	}
	return m.opts.Journal.GetContainerResourceAllocation(m.opts.Pods.TranslateUID(uid), container)
}
