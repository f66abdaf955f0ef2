package oracle

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// explainSetBack: statusd's time is later, and the kubelet's would be a step back for readers
// of the API: another writer gave the condition a later time, or another status in between. It
// is in the cache too if the status was stored again on top of the API's. The times of resize
// conditions are the reporter's, and may be older than before as well; they are in what is read
// back from the API too.
func explainSetBack(c *Case) bool {
	server := c.sides[theStatusd].server()
	later := func(k, d *v1.PodCondition) bool {
		if !sameButTime(k, d) || d.LastTransitionTime.Before(&k.LastTransitionTime) {
			return false
		}
		if podrules.HasTransitionTime(k.Type) && !server.wouldStepBack(c.Pod.name, k, d) {
			return false
		}
		k.LastTransitionTime = d.LastTransitionTime
		return true
	}
	read := conditionPairs(c.Kubelet.Resize, c.Statusd.Resize, func(k, d *v1.PodCondition) bool {
		return server.hasHeld(c.Pod.name, d) && later(k, d)
	})
	return c.statusPairs(func(k, d *v1.PodStatus) bool { return conditionPairs(k.Conditions, d.Conditions, later) }) || read
}

// isShown reports whether the list has the condition with this very transition time.
func isShown(list []v1.PodCondition, c *v1.PodCondition) bool {
	seen := podstatus.FindCondition(list, c.Type)
	return seen != nil && seen.Status == c.Status && seen.LastTransitionTime.Equal(&c.LastTransitionTime)
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
// generation. If the API has ended otherwise than the cache (X7), the kubelet's times are those of
// the correction, and statusd's may be that of a report that came later.
func explainChurn(c *Case) bool {
	if !c.Pod.readyAtEnd {
		return false
	}
	reported := func(d *v1.PodCondition) bool {
		return c.Kubelet.Cached != nil && c.Kubelet.API != nil && c.Kubelet.Cached.Phase != c.Kubelet.API.Status.Phase &&
			c.Statusd.Cached != nil && isShown(c.Statusd.Cached.Conditions, d)
	}
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		return conditionPairs(k.Conditions, d.Conditions, func(k, d *v1.PodCondition) bool {
			once := *k // as it was when statusd wrote it
			if isTerminalReason(k.Reason) && k.ObservedGeneration > d.ObservedGeneration {
				once.ObservedGeneration = d.ObservedGeneration
			}
			if d.LastTransitionTime.Sub(k.LastTransitionTime.Time) <= kubeletTick || reported(d) {
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

// explainLastCopy: the pod is gone from the API, and what is reported of it afterwards continues the newest
// copy that the watch has shown (U5). On statusd's side that copy has the transition of another writer,
// which the kubelet had written over, in a turn of its own, before its watch showed it (U3).
func explainLastCopy(c *Case) bool {
	if c.Kubelet.API != nil || c.Statusd.API != nil || !c.Kubelet.Deleted || !c.Statusd.Deleted {
		return false
	}
	server := c.sides[theStatusd].server()
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		return conditionPairs(k.Conditions, d.Conditions, func(k, d *v1.PodCondition) bool {
			if !sameButTime(k, d) || !d.LastTransitionTime.Before(&k.LastTransitionTime) || !server.othersWrote(c.Pod.name, d) {
				return false
			}
			k.LastTransitionTime = d.LastTransitionTime
			return true
		})
	})
}

// explainLastDetails: the pod is gone from the API, and what is reported of it afterwards continues a copy without
// the details that waited for the pod's end (S15). Only the transition time of the detail shows it.
func explainLastDetails(c *Case) bool {
	if c.Kubelet.API != nil || c.Statusd.API != nil || !c.Kubelet.Deleted || !c.Statusd.Deleted {
		return false
	}
	return c.statusPairs(func(k, d *v1.PodStatus) bool {
		return conditionPairs(k.Conditions, d.Conditions, func(k, d *v1.PodCondition) bool {
			if k.Type != v1.PodReadyToStartContainers || !sameButTime(k, d) {
				return false
			}
			k.LastTransitionTime = d.LastTransitionTime
			return true
		})
	})
}
