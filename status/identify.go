package status

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// identify returns the pod of a report without a UID: the pod with this name in the manager's own
// table. Providers that rebuild pods from their own storage identify pods by name alone, as
// virtual-kubelet does. Without a UID two pods would share one status.
func (m *Manager) identify(pod *v1.Pod) (*v1.Pod, error) {
	if pod.UID != "" {
		return pod, nil
	}
	if m.table == nil {
		return nil, fmt.Errorf("status: pod %s/%s: %w", pod.Namespace, pod.Name, ErrNoUID)
	}
	known, ok := m.table.ByName(pod.Namespace, pod.Name)
	if !ok {
		return nil, fmt.Errorf("status: pod %s/%s: %w, and of this name: %w", pod.Namespace, pod.Name, ErrNoUID, ErrUnknownPod)
	}
	return known, nil
}

// former reports whether the table has a later pod under the name of this one, which is gone then. The
// table may also lag behind the reporter: two handlers of an informer are not called at the same time.
func (m *Manager) former(pod *v1.Pod) bool {
	if m.table == nil || podstatus.IsStatic(pod) {
		return false
	}
	named, ok := m.table.ByName(pod.Namespace, pod.Name)
	return ok && named.UID != pod.UID && !podstatus.IsStatic(named) && !createdAfter(pod, named)
}

// createdAfter reports whether a pod is known to be of a later time than another pod of its name.
func createdAfter(pod, other *v1.Pod) bool {
	if a, b := revisionOf(pod), revisionOf(other); a != 0 && b != 0 {
		return a > b
	}
	return pod.CreationTimestamp.After(other.CreationTimestamp.Time)
}
