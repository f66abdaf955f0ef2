package podrules

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// OnlyDetails reports whether a write of the desired status over the API's would change nothing but details: the condition
// PodReadyToStartContainers and, if the pod is in deletion, observed generations and the resources of the pod as a whole. The condition
// tells how far the start of a pod has come, and its transition time tells since when; what follows, addresses and running containers,
// is no detail. The generation of a pod in deletion tells only that the node knows of the deletion, and its resources are those
// of a cgroup that is about to be removed.
func (o Ownership) OnlyDetails(pod *v1.Pod, api, desired *v1.PodStatus) bool {
	rest := *desired
	rest.Conditions = slices.Clone(desired.Conditions)
	withCondition(&rest, api, v1.PodReadyToStartContainers)
	if pod.DeletionTimestamp != nil {
		rest.ObservedGeneration = api.ObservedGeneration
		rest.Resources, rest.AllocatedResources = api.Resources, api.AllocatedResources
		for i := range rest.Conditions {
			if shown := LastOfType(api.Conditions, rest.Conditions[i].Type); shown != nil {
				rest.Conditions[i].ObservedGeneration = shown.ObservedGeneration
			}
		}
	}
	patch, err := o.Patch("any", api, &rest)
	return err == nil && patch == nil
}

// withCondition copies the conditions of one type from another status.
func withCondition(status, other *v1.PodStatus, t v1.PodConditionType) {
	of := func(c v1.PodCondition) bool { return c.Type == t }
	status.Conditions = slices.DeleteFunc(status.Conditions, of)
	for _, c := range other.Conditions {
		if of(c) {
			status.Conditions = append(status.Conditions, c)
		}
	}
}
