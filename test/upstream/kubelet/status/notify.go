package status

import (
	v1 "k8s.io/api/core/v1"
)

// PodUpdateNotifier receives changes.
type PodUpdateNotifier interface {
	// OnPodUpdated is called with the pod and its new status.
	OnPodUpdated(pod *v1.Pod, status v1.PodStatus, isAdded bool)
	// OnPodRemoved is called when the pod has ended for good.
	OnPodRemoved(pod *v1.Pod)
}

func (m *manager) AddPodUpdateNotifier(notifier PodUpdateNotifier) {
	m.notifying.Lock()
	defer m.notifying.Unlock()
	m.notifiers = append(m.notifiers, notifier)
}

// notify passes the newest status of a pod to the receivers. Of two simultaneous changes the later one is passed last.
func (m *manager) notify(pod *v1.Pod, added, finished bool) {
	m.notifying.Lock()
	defer m.notifying.Unlock()
	if len(m.notifiers) == 0 {
		return
	}
	status, ok := m.GetPodStatus(pod.UID)
	if !ok {
		return // removed meanwhile
	}
	changed := *pod
	changed.Status = status
	for _, notifier := range m.notifiers {
		if finished {
			notifier.OnPodRemoved(&changed)
		} else {
			notifier.OnPodUpdated(&changed, status, added)
		}
	}
}
