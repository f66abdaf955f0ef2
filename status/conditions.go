package status

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// foreignTypes are the reported condition types that this node does not own. A warning is logged
// once for each.
type foreignTypes struct {
	warned sync.Map // of v1.PodConditionType
}

// warnOfForeign logs the conditions of a report that will not be sent. A reporter may repeat the
// conditions of other writers, as the kubelet does: only a type that the API's pod lacks is logged.
func (m *Manager) warnOfForeign(pod *v1.Pod, reported []v1.PodCondition) {
	for i := range reported {
		t := reported[i].Type
		if !m.owns.IsForeign(t) || podstatus.FindCondition(m.conditionsInAPI(pod), t) != nil {
			continue
		}
		if _, again := m.foreign.warned.LoadOrStore(t, true); !again {
			m.opts.Logger.Warn("a reported condition type is not owned by this node and is not sent; to own it, name it in Options.OwnedConditions",
				"type", t, "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID)
		}
	}
}

// conditionsInAPI are the conditions of the newest copy of the API's pod that the table has:
// the pod itself, or the mirror of a static pod.
func (m *Manager) conditionsInAPI(pod *v1.Pod) []v1.PodCondition {
	if podstatus.IsStatic(pod) {
		mirror, ok := m.opts.Pods.MirrorOf(pod)
		if !ok {
			return nil
		}
		return mirror.Status.Conditions
	}
	if known, ok := m.opts.Pods.ByUID(pod.UID); ok {
		pod = known
	}
	return pod.Status.Conditions
}

// withContainerReady applies a readiness result. Readiness gates are decided by the newest
// conditions of the API's pod: the cached ones of other owners may be old (E3).
func (m *Manager) withContainerReady(pod *v1.Pod, cached *v1.PodStatus, containerID string, ready bool, now time.Time) (v1.PodStatus, podrules.Flip) {
	return m.owns.WithContainerReady(pod, m.conditionsInAPI(pod), cached, containerID, ready, now)
}
