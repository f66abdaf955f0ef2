package status

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// SetPodAllocation stores the resources of the pod's spec as those set aside for it. They
// are on disk when it returns; if they could not be written, what was stored before holds. A
// manager with a table of its own refuses it with [ErrUnknownPod] for a pod that was neither
// observed nor reported.
func (m *Manager) SetPodAllocation(pod *v1.Pod) error {
	if m.opts.Journal == nil {
		return fmt.Errorf("allocation of pod %s/%s: %w", pod.Namespace, pod.Name, ErrNoJournal)
	}
	if !m.knows(pod.UID) {
		return fmt.Errorf("allocation of pod %s/%s: %w", pod.Namespace, pod.Name, ErrUnknownPod)
	}
	return m.journaled("store allocation", pod.UID, m.opts.Journal.SetPodAllocation(pod.UID, podstatus.AllocationOf(pod)))
}

// GetPodAllocation returns the resources set aside for a pod, if the journal can say so.
func (m *Manager) GetPodAllocation(uid types.UID) (podstatus.Allocation, bool) {
	journal, can := m.opts.Journal.(interface {
		GetPodAllocation(types.UID) (podstatus.Allocation, bool)
	})
	if !can {
		return podstatus.Allocation{}, false
	}
	return journal.GetPodAllocation(m.opts.Pods.TranslateUID(uid))
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
	m.resizes.mu.Lock()
	defer m.resizes.mu.Unlock()
	return podstatus.ResizeStatusOf(m.resizes.pods[uid])
}
