package podrules

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Merge returns the status that the API should have after the cached status is written: the cached
// status, with the fields that the node does not own taken from the API.
//
//   - Foreign conditions come from the API, owned conditions from the cache; an owned condition
//     that the cache lacks is removed (X1, X3). The claim statuses come from the API (X4).
//   - A terminal phase is withheld while a container of the pod could still run, and with
//     it the DisruptionTarget that explains it (X2, X5).
//   - A terminal phase in the API is final, and a terminal pod is never ready (X6, X7).
//   - A transition time never goes back before the API's (#119514), unless the API's is in the
//     future.
//   - If the cache has no QoS class or observed generation, the API's values stay: the API server
//     refuses to clear them, and would refuse each retry.
//
// CouldRun reports whether containers of the node's pod could run; it must not be computed for a
// mirror pod's UID (X9). Only the generation of pod is used. The result may share memory with api
// and cached; neither is modified (X8).
func Merge(pod *v1.Pod, api, cached *v1.PodStatus, couldRun bool, now time.Time) v1.PodStatus {
	return Ownership{}.Merge(pod, api, cached, couldRun, now)
}

// Merge is [Merge] with this table.
func (o Ownership) Merge(pod *v1.Pod, api, cached *v1.PodStatus, couldRun bool, now time.Time) v1.PodStatus {
	withheld := Withheld(api, cached, couldRun)
	merged := *cached
	merged.ResourceClaimStatuses = api.ResourceClaimStatuses
	merged.ExtendedResourceClaimStatus = api.ExtendedResourceClaimStatus
	allocatableClaims.copy(&merged, api)
	keepUnwritten(&merged, api)
	merged.QOSClass = cmp.Or(cached.QOSClass, api.QOSClass)
	merged.ObservedGeneration = cmp.Or(cached.ObservedGeneration, api.ObservedGeneration)
	if withheld || phaseIsFinal(api, cached) {
		merged.Phase, merged.Reason, merged.Message = api.Phase, api.Reason, api.Message
	}

	m := conditionMerge{own: o, api: api, now: now}
	m.add(cached.Conditions, becomesTerminal(api, cached) && !withheld)
	if IsTerminal(merged.Phase) {
		m.unready(pod, merged.Phase)
	}
	merged.Conditions = slices.Clip(m.result)
	return merged
}

// Withheld reports whether Merge withholds the cached phase because it is terminal, the API's is
// not, and a container of the pod could still run (X5). The write of the terminal phase is still
// due.
func Withheld(api, cached *v1.PodStatus, couldRun bool) bool {
	return couldRun && becomesTerminal(api, cached)
}

func becomesTerminal(api, cached *v1.PodStatus) bool {
	return !IsTerminal(api.Phase) && IsTerminal(cached.Phase)
}

// conditionMerge builds a list of conditions over those of the API.
type conditionMerge struct {
	own    Ownership
	api    *v1.PodStatus
	now    time.Time
	result []v1.PodCondition
}

// add takes what is not owned from the API and then the owned conditions from the cache, of
// two with one type the last (E7). A cached DisruptionTarget says why the pod became
// terminal; it is news only in the write that says so (X2).
func (m *conditionMerge) add(cached []v1.PodCondition, saysTerminal bool) {
	m.result = make([]v1.PodCondition, 0, len(m.api.Conditions)+len(cached))
	for _, c := range m.api.Conditions {
		if !m.own.IsOwned(c.Type) {
			m.result = append(m.result, c)
		}
	}
	for i, c := range cached {
		switch {
		case !m.own.isLastOfType(cached, i):
		case m.own.IsOwned(c.Type):
			m.set(c)
		case saysTerminal: // shared
			c.LastTransitionTime = TransitionTime(m.api, &c, m.now)
			m.set(c)
		}
	}
}

// unready makes Ready and ContainersReady say that the pod is over, if either is still
// true: it may take the node a while to notice (X6, #108594).
func (m *conditionMerge) unready(pod *v1.Pod, phase v1.PodPhase) {
	if !m.isTrue(v1.PodReady) && !m.isTrue(v1.ContainersReady) {
		return
	}
	for _, t := range [...]v1.PodConditionType{v1.ContainersReady, v1.PodReady} {
		c, current := TerminalCondition(pod, t, phase), LastOfType(m.result, t)
		c.ObservedGeneration = laterGeneration(&c, current)
		if current != nil && current.Status == c.Status {
			c.LastTransitionTime = current.LastTransitionTime
		} else {
			c.LastTransitionTime = TransitionTime(m.api, &c, m.now)
		}
		m.set(c)
	}
}

func (m *conditionMerge) isTrue(t v1.PodConditionType) bool {
	c := LastOfType(m.result, t)
	return c != nil && c.Status == v1.ConditionTrue
}

// set replaces the condition of the same type, or adds the condition at the end.
func (m *conditionMerge) set(c v1.PodCondition) {
	if api := LastOfType(m.api.Conditions, c.Type); api != nil {
		c.LastTransitionTime = publishedTime(api, &c, m.now)
		c.ObservedGeneration = cmp.Or(c.ObservedGeneration, api.ObservedGeneration)
	}
	if current := LastOfType(m.result, c.Type); current != nil {
		*current = c
		return
	}
	m.result = append(m.result, c)
}

// Deletable reports whether the pod may now be deleted from the API: its deletion was requested,
// the phase in the API is terminal, and the node is finished with the pod (D1, D6). A mirror pod is
// deleted with its static pod, never by this rule.
func Deletable(apiPod *v1.Pod, finished bool) bool {
	return finished &&
		apiPod.DeletionTimestamp != nil &&
		!IsMirror(apiPod) &&
		IsTerminal(apiPod.Status.Phase)
}
