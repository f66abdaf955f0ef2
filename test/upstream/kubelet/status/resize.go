package status

import (
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
)

func (m *manager) GetPodResizeConditions(podUID types.UID) []*v1.PodCondition {
	var list []*v1.PodCondition
	conditions := m.Resizes().GetPodResizeConditions(podUID)
	for i := range conditions {
		list = append(list, &conditions[i])
	}
	return list
}

func (m *manager) SetPodResizePendingCondition(podUID types.UID, reason, message string, observedGeneration int64) bool {
	defer m.resized(podUID)
	return m.Resizes().SetPodResizePendingCondition(podUID, reason, message, observedGeneration)
}

func (m *manager) SetPodResizeInProgressCondition(podUID types.UID, reason, message string, observedGeneration int64) (int64, bool) {
	defer m.resized(podUID)
	return m.Resizes().SetPodResizeInProgressCondition(podUID, reason, message, observedGeneration)
}

func (m *manager) ClearPodResizePendingCondition(podUID types.UID) {
	m.Resizes().ClearPodResizePendingCondition(podUID)
	m.resized(podUID)
}

func (m *manager) ClearPodResizeInProgressCondition(podUID types.UID) (int64, bool) {
	defer m.resized(podUID)
	return m.Resizes().ClearPodResizeInProgressCondition(podUID)
}

func (m *manager) BackfillPodResizeConditions(pods []*v1.Pod) {
	m.Resizes().BackfillPodResizeConditions(pods)
	for _, pod := range pods {
		m.resized(pod.UID)
	}
}

func (m *manager) IsPodResizeDeferred(podUID types.UID) bool {
	return m.pendingReason(podUID) == v1.PodReasonDeferred
}

func (m *manager) IsPodResizeInfeasible(podUID types.UID) bool {
	return m.pendingReason(podUID) == v1.PodReasonInfeasible
}

// pendingReason is why a resize of the pod waits, "" if none does.
func (m *manager) pendingReason(uid types.UID) string {
	for _, c := range m.Resizes().GetPodResizeConditions(uid) {
		if c.Type == v1.PodResizePending {
			return c.Reason
		}
	}
	return ""
}

func (m *manager) resized(uid types.UID) {
	state := resizeState{pending: m.pendingReason(uid)}
	for _, c := range m.Resizes().GetPodResizeConditions(uid) {
		state.inProgress = state.inProgress || c.Type == v1.PodResizeInProgress
	}
	m.resizes.set(uid, state)
}

// resizeGauges keeps the kubelet's gauges of resizes.
type resizeGauges struct {
	mu   sync.Mutex
	pods map[types.UID]resizeState // of pods with a resize
}

type resizeState struct {
	pending    string // the reason
	inProgress bool
}

func (g *resizeGauges) set(uid types.UID, state resizeState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pods[uid] == state {
		return
	}
	if g.pods == nil {
		g.pods = map[types.UID]resizeState{}
	}
	g.pods[uid] = state
	if state == (resizeState{}) {
		delete(g.pods, uid)
	}
	g.publish()
}

func (g *resizeGauges) retain(known map[types.UID]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for uid := range g.pods {
		if _, ok := known[uid]; !ok {
			delete(g.pods, uid)
			defer g.publish()
		}
	}
}

// publish sets the gauges. The caller holds the lock.
func (g *resizeGauges) publish() {
	pending, inProgress := map[string]int{}, 0
	for _, state := range g.pods {
		if state.pending != "" {
			pending[strings.ToLower(state.pending)]++
		}
		if state.inProgress {
			inProgress++
		}
	}
	metrics.PodPendingResizes.Reset()
	for reason, n := range pending {
		metrics.PodPendingResizes.WithLabelValues(reason).Set(float64(n))
	}
	metrics.PodInProgressResizes.Set(float64(inProgress))
}
