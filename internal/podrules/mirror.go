package podrules

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// WithMirrorStatus returns a static pod with the status that its mirror has from an earlier process
// of the node, as a pod of the API brings its own: containers that run on stay ready until a probe
// says otherwise. An end is not taken over, because what a manifest defines runs again once the
// runtime has forgotten it. Nor are the conditions of others, which change without the manifest. A
// pod that is not the mirror of this one changes nothing. The pod passed in is not changed.
func WithMirrorStatus(static, mirror *v1.Pod) *v1.Pod {
	if !IsMirrorOf(mirror, static) || IsTerminal(mirror.Status.Phase) {
		return static
	}
	known := *static
	known.Status = mirror.Status
	known.Status.Conditions = slices.DeleteFunc(slices.Clone(mirror.Status.Conditions), func(c v1.PodCondition) bool {
		return !IsOwned(c.Type) && !IsShared(c.Type)
	})
	return &known
}
