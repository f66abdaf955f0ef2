package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// doUnnamed is what to do about a status that no kubelet writes although managedFields name no other writer.
const doUnnamed = "Look for a program that writes under the kubelet's name or removes conditions: the API server's audit log has the user of each write. " +
	"Look for a mutating admission webhook or policy on "

// inconsistent is the finding for a pod whose phase, Ready or ContainersReady does not follow from its own containers, or which has no condition Ready,
// although no other writer has left its name. A kubelet computes all of them from the containers and writes them in one request.
func (w *world) inconsistent(p *podView) []finding {
	if !w.APIAnswer.Known() || p.api == nil || deleting(p.api.Pod) || !runs(p.api.Pod) {
		return nil
	}
	pod := p.api.Pod
	diffs := derivedDiff(pod, writtenFields{phase: true, conditions: ownConditions(pod)})
	if podstatus.FindCondition(pod.Status.Conditions, v1.PodReady) == nil {
		statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
		ready := podstatus.Ready(pod, pod.Status.Conditions, statuses, pod.Status.Phase)
		diffs = append(diffs, fieldDiff{field: string(v1.PodReady), is: "missing", was: string(ready.Status)})
	}
	if len(diffs) == 0 {
		return nil
	}
	others := w.writtenByOthers(pod)
	diffs = slices.DeleteFunc(diffs, func(d fieldDiff) bool { return others.containers || others.explains(d) })
	if len(diffs) == 0 {
		return nil
	}
	var api, truth []string
	for _, d := range diffs {
		api, truth = append(api, d.field+" "+d.is), append(truth, d.field+" "+d.was)
	}
	f := finding{
		Difference: Difference{Kind: ForeignWriter, Pod: p.ref, Subject: strings.Join(fieldNames(diffs), ", "), Certainty: Likely,
			Message: fmt.Sprintf("The status of %s/%s contradicts itself: %s is %s, but by its containers it is %s. A kubelet writes both in one request.",
				p.ref.Namespace, p.ref.Name, diffs[0].field, diffs[0].is, diffs[0].was),
			Evidence: []Evidence{w.evidence(SideAPI, p.api.At, fmt.Sprintf("%s; by the containers of the same status: %s", strings.Join(api, ", "), strings.Join(truth, ", ")))},
			Do:       doUnnamed + "pods/status."},
		needs: []Side{SideAPI}, fresh: []Side{SideAPI}, news: SideAPI,
	}
	if endsSoon(pod) {
		f.allow = grace(pod) + leftoverAllowance
	}
	return []finding{f}
}

// endsSoon reports whether a condition has the reason of a terminal phase. A kubelet that ends a pod, as by eviction, takes readiness away at once and
// writes the phase when the containers have ended.
func endsSoon(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Reason == podrules.ReasonPodFailed || c.Reason == podrules.ReasonPodCompleted
	})
}

// runs reports whether the status has each container of the spec, and one that runs. Other pods may have a phase of their own: one that is evicted or
// refused fails whatever its containers are.
func runs(pod *v1.Pod) bool {
	running := false
	for _, name := range regularNames(pod) {
		s := podstatus.FindContainerStatus(&pod.Status, name)
		if s == nil {
			return false
		}
		running = running || s.State.Running != nil
	}
	return running
}

// ownConditions are the conditions that follow from the containers alone: readiness gates are written by others at any time.
func ownConditions(pod *v1.Pod) []v1.PodConditionType {
	if len(pod.Spec.ReadinessGates) > 0 {
		return []v1.PodConditionType{v1.ContainersReady}
	}
	return []v1.PodConditionType{v1.ContainersReady, v1.PodReady}
}

// writtenByOthers are the kubelet's fields that other writers have written, by right or not.
func (w *world) writtenByOthers(pod *v1.Pod) (all writtenFields) {
	for _, e := range pod.ManagedFields {
		if !w.writers[e.Manager] && e.FieldsV1 != nil {
			all = all.and(fieldsOf(e, &pod.Status))
		}
	}
	return all
}

// withoutReady is the finding for a Node without the condition Ready although its kubelet works. The kubelet creates its Node with the condition; a
// writer that removes it leaves no name.
func (w *world) withoutReady() []finding {
	if !w.APIAnswer.Known() || w.NodeObject == nil || !w.kubeletAnswers() || !w.leaseRenewed() ||
		slices.ContainsFunc(w.NodeObject.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady }) {
		return nil
	}
	return []finding{{
		Difference: Difference{Kind: ForeignWriter, Subject: "node", Certainty: Likely,
			Message: fmt.Sprintf("Node %s has no condition Ready, which its kubelet writes; the kubelet answers and renews its lease.", w.Node),
			Evidence: []Evidence{
				w.evidence(SideAPI, w.NodeAt, "no condition Ready"),
				w.evidence(SideKubelet, time.Time{}, "answers"),
			},
			Do: doUnnamed + "nodes/status."},
		needs: []Side{SideAPI, SideKubelet}, fresh: []Side{SideAPI, SideKubelet}, news: SideAPI,
	}}
}
