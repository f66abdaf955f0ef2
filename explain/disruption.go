package explain

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// disruptions are who ends a pod, by the reason of its condition DisruptionTarget.
var disruptions = map[string]struct {
	text string
	next Next
}{
	v1.PodReasonPreemptionByScheduler: {"the scheduler ends it to make room for a pod of higher priority", Next{Do: "give it a higher priority, or add a node"}},
	"DeletionByTaintManager":          {"the taint manager ends it: its node has a NoExecute taint that it does not tolerate", Next{Do: "remove the taint, or add a toleration"}},
	"DeletionByDeviceTaintManager":    {"the taint manager ends it: a device that it uses has a NoExecute taint", Next{Do: "remove the taint of the device, or add a toleration"}},
	"DeletionByPodGC":                 {"the control plane ends it: its node does not exist any more", Next{Do: "check why the node was removed"}},
	"EvictionByEvictionAPI":           {"it is evicted through the API, as kubectl drain does", Next{Wait: replaced}},
	v1.PodReasonTerminationByKubelet:  {"its node ends it", Next{Do: "read the message, and check the node"}},
}

// disrupted is who ends a pod, or has ended it, nil if that was not reported.
func (f Facts) disrupted() *Cause {
	c := f.condition(v1.DisruptionTarget)
	if c == nil || c.Status != v1.ConditionTrue {
		return nil
	}
	cause := &Cause{Code: CodeDisruption, Since: known(c.LastTransitionTime.Time)}
	if d, ok := disruptions[c.Reason]; ok {
		next := d.next
		cause.Text, cause.Next = d.text, &next
		if c.Reason == v1.PodReasonTerminationByKubelet {
			cause.Text += detail(c.Message)
		}
	} else {
		cause.Text = strings.TrimSpace("it is to be ended, with reason " + c.Reason)
		cause.Text, cause.Next = cause.Text+detail(c.Message), do("find what gave that reason")
	}
	if controlled := metav1.GetControllerOf(f.Pod) != nil; cause.Next.Wait == replaced && !controlled {
		cause.Next.Wait, cause.Next.Do = "", "create it again when it is gone, since it has no controller"
	}
	return cause
}
