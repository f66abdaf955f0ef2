package oracle

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/statusd/statusd/podstatus"
)

// explainSetBack: statusd's time is later, and the kubelet's would be a step back for readers
// of the API: another writer gave the condition a later time, or another status in between. It
// is in the cache too if the status was stored again on top of the API's. The times of resize
// conditions are the reporter's, and may be older than before as well.
func explainSetBack(c *Case) bool {
	server := c.sides[theStatusd].server()
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		return conditionPairs(k.Conditions, d.Conditions, func(k, d *v1.PodCondition) bool {
			if !sameButTime(k, d) || d.LastTransitionTime.Before(&k.LastTransitionTime) {
				return false
			}
			if podstatus.HasTransitionTime(k.Type) && !server.wouldStepBack(c.Pod.name, k, d) {
				return false
			}
			k.LastTransitionTime = d.LastTransitionTime
			return true
		})
	})
}

// explainDisruptionTime: only the time of DisruptionTarget differs, which both sides set
// when they send it, at their next look at a pod whose containers have stopped.
func explainDisruptionTime(c *Case) bool {
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		return conditionPairs(k.Conditions, d.Conditions, func(k, d *v1.PodCondition) bool {
			if k.Type != v1.DisruptionTarget || !sameButTime(k, d) {
				return false
			}
			k.LastTransitionTime = d.LastTransitionTime
			return true
		})
	})
}

// explainChurn: the pod had ended while its status said that it is ready. Only the times of the
// two readiness conditions differ: both sides set them when they send the end, statusd up to a
// back-off after the kubelet's tick, and the kubelet again with each write, with the newest
// generation.
func explainChurn(c *Case) bool {
	if !c.Pod.readyAtEnd {
		return false
	}
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		return conditionPairs(k.Conditions, d.Conditions, func(k, d *v1.PodCondition) bool {
			once := *k // as it was when statusd wrote it
			if isTerminalReason(k.Reason) && k.ObservedGeneration > d.ObservedGeneration {
				once.ObservedGeneration = d.ObservedGeneration
			}
			if d.LastTransitionTime.Sub(k.LastTransitionTime.Time) <= kubeletTick {
				once.LastTransitionTime = d.LastTransitionTime
			}
			if !isReadiness(k.Type) || equality.Semantic.DeepEqual(k, d) || !equality.Semantic.DeepEqual(&once, d) {
				return false
			}
			*k = *d
			return true
		})
	})
}
