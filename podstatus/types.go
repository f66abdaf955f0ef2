package podstatus

import v1 "k8s.io/api/core/v1"

// Allocation is what a node has set aside for a pod: the resources that were admitted,
// which differ from those in the spec while a resize is pending.
type Allocation struct {
	// Containers maps container names to their resources.
	Containers map[string]v1.ResourceRequirements
	// PodLevel holds the pod's own resources, nil if the pod has none.
	PodLevel *v1.ResourceRequirements
}

// Final is a status after which the pod changes no more, kept until the API server has it.
type Final struct {
	Namespace string
	Name      string
	// Version is the manager's version of the status.
	Version uint64
	// Finished says that the pod has terminated and may be deleted from the API.
	Finished bool
	Status   v1.PodStatus
}

// ResizeConditions are the two conditions that tell how a resize stands. Nil means that
// the condition is absent. Values are immutable: the methods return new ones.
type ResizeConditions struct {
	Pending    *v1.PodCondition
	InProgress *v1.PodCondition
}

// ResizeStatus tells how a resize stands in the one word that was used before there were
// conditions for it. Kubernetes calls the type deprecated; node agents still store it.
//
//lint:ignore SA1019 this is the one place that names the deprecated type
type ResizeStatus = v1.PodResizeStatus
