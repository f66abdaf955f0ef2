package podrules

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// WithMirrorStatus returns a static pod with the status of its mirror pod, which an earlier process
// of the node has written: containers that keep running stay ready until a probe fails. A terminal
// status is not copied, because a static pod runs again once the runtime has forgotten it. The
// conditions of other writers are not copied either, since they change without the manifest. If
// mirror is not the mirror pod of static, static is returned unchanged. The arguments are not
// modified.
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
