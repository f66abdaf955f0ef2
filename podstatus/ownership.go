package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Ownership is the table that says which condition types are the node's. The zero value is
// that of the kubelet (C1, C2, C3), and what the functions of this package go by; an agent
// that reports condition types of its own declares them with [Owning] and uses the methods
// of the same names. An Ownership is immutable and may be used from any goroutine.
type Ownership struct {
	declared []v1.PodConditionType
}

// Owning returns the kubelet's table with further types that this node owns: it alone writes
// them, keeps their transition times, and removes them from the API once it reports them no
// more. A type that the kubelet's table has already, also as shared, stays as it is there.
func Owning(types ...v1.PodConditionType) Ownership {
	var declared []v1.PodConditionType
	for _, t := range types {
		if traitsOf(t) == 0 && !slices.Contains(declared, t) {
			declared = append(declared, t)
		}
	}
	return Ownership{declared: declared}
}

// traits is what a condition type is to this node, none of it for a foreign type.
type traits uint8

const (
	owned  traits = 1 << iota // only the node writes it
	shared                    // the node and others write it
	timed                     // the node keeps its transition time
)

// conditionType is a row of the kubelet's table.
type conditionType struct {
	kind   v1.PodConditionType
	traits traits
	// generate makes the condition for a status whose earlier conditions are given, nil if
	// the status needs none. Without it the condition is only there if it is reported.
	generate func(g *generation, status *v1.PodStatus, earlier []v1.PodCondition) *v1.PodCondition
}

// kubeletTypes is the kubelet's table, in the order in which statuses list the conditions. A
// new type that nodes own is a row here and its generator.
var kubeletTypes = [...]conditionType{
	{v1.PodResizePending, owned, nil}, // the times of these two are those of the resize
	{v1.PodResizeInProgress, owned, nil},
	{v1.DisruptionTarget, shared | timed, (*generation).disruptionTarget},
	{v1.PodReadyToStartContainers, owned | timed, (*generation).readyToStartContainers},
	{v1.PodInitialized, owned | timed, (*generation).initialized},
	{v1.PodReady, owned | timed, (*generation).ready},
	{v1.ContainersReady, owned | timed, (*generation).containersReady},
	{v1.PodScheduled, owned | timed, (*generation).scheduled},
	{v1.AllContainersRestarting, owned | timed, (*generation).allContainersRestarting},
}

func traitsOf(t v1.PodConditionType) traits {
	for i := range kubeletTypes {
		if kubeletTypes[i].kind == t {
			return kubeletTypes[i].traits
		}
	}
	return 0
}

func (o Ownership) traitsOf(t v1.PodConditionType) traits {
	known := traitsOf(t)
	if known == 0 && len(o.declared) > 0 && slices.Contains(o.declared, t) {
		return owned | timed
	}
	return known
}

// IsOwned reports whether only the node writes conditions of this type (C1). An owned
// condition that the node does not report is removed from the API.
func (o Ownership) IsOwned(t v1.PodConditionType) bool { return o.traitsOf(t)&owned != 0 }

// IsShared reports whether the node and others both write conditions of this type (C2).
// Types that are neither owned nor shared are foreign: the node never touches them.
func (o Ownership) IsShared(t v1.PodConditionType) bool { return o.traitsOf(t)&shared != 0 }

// IsForeign reports whether conditions of this type are not the node's: they are kept as the
// API has them, and not sent if a reporter names them.
func (o Ownership) IsForeign(t v1.PodConditionType) bool { return o.traitsOf(t) == 0 }

// HasTransitionTime reports whether the node itself keeps the last transition time of
// conditions of this type, whatever time a reporter put in (C3).
func (o Ownership) HasTransitionTime(t v1.PodConditionType) bool { return o.traitsOf(t)&timed != 0 }

// IsOwned is [Ownership.IsOwned] of the kubelet's table.
func IsOwned(t v1.PodConditionType) bool { return Ownership{}.IsOwned(t) }

// IsShared is [Ownership.IsShared] of the kubelet's table.
func IsShared(t v1.PodConditionType) bool { return Ownership{}.IsShared(t) }

// HasTransitionTime is [Ownership.HasTransitionTime] of the kubelet's table.
func HasTransitionTime(t v1.PodConditionType) bool { return Ownership{}.HasTransitionTime(t) }

// FindCondition returns a pointer to the first condition of the type in conditions, or nil.
// It points into the slice: a caller that does not own the slice must not write through it.
func FindCondition(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// isTrue reports whether the condition exists and is True.
func isTrue(conditions []v1.PodCondition, t v1.PodConditionType) bool {
	c := FindCondition(conditions, t)
	return c != nil && c.Status == v1.ConditionTrue
}
