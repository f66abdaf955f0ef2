package status

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// The methods in this file have the names that the kubelet's status manager gives them, for people
// who come from there, and mean the same. Unlike there, they return errors, and what they return is
// the caller's.

// SetPodStatus stores the status of a pod, and has it sent if it differs from the one that was
// stored before. Nothing of what is passed in is kept or changed. It
// reports whether there was a difference.
//
// A status that no pod can have is refused with an [*InvalidStatusError] that names the
// field, and one in which a container that had ended for good is alive again with a
// [*podstatus.TransitionError]; nothing is stored then. A pod that has Succeeded or Failed
// stays so: of a status with another phase everything else is stored, and the error is a
// [*PhaseError]. If a final status could not be written to the journal, it is stored and
// sent all the same, and the journal's error is returned.
func (m *Manager) SetPodStatus(pod *v1.Pod, status v1.PodStatus) (changed bool, err error) {
	old := m.cache.load(pod.UID)
	forced := pod.DeletionTimestamp != nil // U3
	if old != nil && !forced && m.owns.Unchanged(pod, &old.status, &status) && phaseError(&old.status, &status) == nil {
		return false, nil
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
	return m.flip("SetContainerStartup", uid, containerID, started, podstatus.WithContainerStarted)
}

// TerminatePod records that the pod has ended and that nothing of it will change any more: once
// the API server has its last status, the pod may be deleted there. Containers whose end was not
// observed are reported as such; a pod that is not static becomes Failed unless it has
// a terminal phase already.
func (m *Manager) TerminatePod(pod *v1.Pod) error {
	var observed func(string) (v1.ContainerStateTerminated, bool)
	if m.opts.Journal != nil {
		observed = m.opts.Journal.Termination
	}
	_, err := m.store(pod, storing{by: "TerminatePod", forced: true, finish: true}, func(old *v1.PodStatus, cached bool) (v1.PodStatus, error) {
		status := old
		if !cached {
			status = &pod.Status // K1: not the mirror's
		}
		ended := podstatus.Terminate(pod, status, observed)
		return m.owns.Next(pod, old, &ended, time.Now()), nil
	})
	return err
}

// RemoveOrphanedStatuses forgets the pods that are not in the map; the values do not matter.
func (m *Manager) RemoveOrphanedStatuses(pods map[types.UID]bool) {
	m.retain(func(uid types.UID) bool {
		_, ok := pods[uid]
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
	if !m.knows(pod.UID) {
		return fmt.Errorf("allocation of pod %s/%s: %w", pod.Namespace, pod.Name, ErrUnknownPod)
	}
	return m.journaled("store allocation", pod.UID, m.opts.Journal.SetPodAllocation(pod.UID, podstatus.AllocationOf(pod)))
}

// GetContainerResourceAllocation returns the resources set aside for a container.
func (m *Manager) GetContainerResourceAllocation(uid types.UID, container string) (v1.ResourceRequirements, bool) {
	if m.opts.Journal == nil {
		return v1.ResourceRequirements{}, false
	}
	return m.opts.Journal.GetContainerResourceAllocation(m.opts.Pods.TranslateUID(uid), container)
}

// SetPodResizeStatus stores how a resize of the pod stands, in the form that was used
// before there were conditions for it. An empty one removes it.
func (m *Manager) SetPodResizeStatus(uid types.UID, status podstatus.ResizeStatus) error {
	if m.opts.Journal == nil {
		return fmt.Errorf("resize status of pod %s: %w", uid, ErrNoJournal)
	}
	if !m.knows(uid) {
		return fmt.Errorf("resize status of pod %s: %w", uid, ErrUnknownPod)
	}
	return m.journaled("store resize status", uid, m.opts.Journal.SetPodResizeStatus(uid, status))
}

// GetPodResizeStatus returns what was stored by SetPodResizeStatus, or else what the
// resize conditions say. It is empty if the pod is not being resized.
func (m *Manager) GetPodResizeStatus(uid types.UID) podstatus.ResizeStatus {
	if m.opts.Journal != nil {
		if status, ok := m.opts.Journal.GetPodResizeStatus(uid); ok {
			return status
		}
	}
	conditions, _ := m.resizes.get(uid)
	return podstatus.ResizeStatusOf(conditions)
}
