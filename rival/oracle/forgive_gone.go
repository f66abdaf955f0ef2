package oracle

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// forgiveWiped: the kubelet forgot a status that statusd kept, while the name was another
// pod's in the API.
func forgiveWiped(c *Case) bool {
	if !c.Pod.wiped {
		return false
	}
	*c.Kubelet = *c.Statusd
	return true
}

// forgiveForgotten: the static pod has no manifest any more. What the mirror says differs,
// and what is stored again on top of it.
func forgiveForgotten(c *Case) bool {
	if !c.Pod.forgotten {
		return false
	}
	*c.Kubelet = *c.Statusd
	return true
}

// forgiveGone: statusd has no status any more of a pod that is gone from the API, or one that
// was reported since, on top of nothing.
func forgiveGone(c *Case) bool {
	if !c.Pod.doneWith || c.Kubelet.Cached == nil || c.Statusd.API != nil || c.Kubelet.API != nil {
		return false
	}
	c.Kubelet.Cached, c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Cached, c.Statusd.Resize, c.Statusd.Calls
	return true
}

// forgiveDeletedFirst: one side had deleted the pod when somebody else did, and the other had
// not: the kubelet because no tick came in between, statusd because the watch had not shown the
// deletion yet, which the kubelet saw when it read. Or there was one more report after statusd's
// deletion, which for the kubelet went with the pod, or was one about a pod that it still had.
func forgiveDeletedFirst(c *Case) bool {
	if c.Pod.outlived && c.Statusd.Deleted && c.Kubelet.Deleted {
		c.Kubelet.Cached, c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Cached, c.Statusd.Resize, c.Statusd.Calls
		return true
	}
	if !c.Pod.vanished || c.Statusd.Deleted == c.Kubelet.Deleted || c.Statusd.API != nil || c.Kubelet.API != nil {
		return false
	}
	// Either side forgets what it has deleted.
	if c.Kubelet.Deleted && c.Kubelet.Cached == nil || c.Pod.outlived && c.Statusd.Deleted {
		c.Kubelet.Cached, c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Cached, c.Statusd.Resize, c.Statusd.Calls
	}
	c.Kubelet.Deleted = c.Statusd.Deleted
	return true
}

// forgiveBackfill: after resize conditions were read back, statusd's are other ones than the
// kubelet's, or the same with older times.
func forgiveBackfill(c *Case) bool {
	if !c.Pod.backfilled || equality.Semantic.DeepEqual(c.Kubelet.Resize, c.Statusd.Resize) && slices.Equal(c.Kubelet.Calls, c.Statusd.Calls) {
		return false
	}
	c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Resize, c.Statusd.Calls
	return true
}

// forgiveResizeOrphans: the kubelet held on to resize conditions that statusd has dropped.
func forgiveResizeOrphans(c *Case) bool {
	if !c.Pod.leftResize {
		return false
	}
	c.Kubelet.Resize, c.Kubelet.Calls = c.Statusd.Resize, c.Statusd.Calls
	return true
}
