package eviction

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// subject is a pod with its usage and requests.
type subject struct {
	pod *v1.Pod
	// usage is nil if it is not known.
	usage    *runtime.Usage
	requests v1.ResourceList
}

// uses is how much of what a signal is about the pod uses.
func (s *subject) uses(signal Signal) uint64 {
	switch signal {
	case MemoryAvailable:
		return s.usage.MemoryBytes
	case NodeFSAvailable:
		return s.usage.DiskBytes
	case NodeFSInodesFree:
		return s.usage.Inodes
	}
	return s.usage.Processes
}

// above is how much more than it has asked for the pod uses, which may be negative. Inodes
// and processes cannot be asked for.
func (s *subject) above(signal Signal) int64 {
	requested := s.requests[signal.resource()]
	return int64(s.uses(signal)) - requested.Value()
}

// rank orders pods for eviction: first pods with unknown usage, then pods above their requests,
// then by low priority, then by usage beyond the requests. Under PID pressure only priority and
// number of processes count. The order is the kubelet's; equal pods keep the given order.
func rank(pods []subject, signal Signal) {
	slices.SortStableFunc(pods, func(a, b subject) int {
		byPriority := cmp.Compare(priority(a.pod), priority(b.pod))
		if signal == PIDAvailable {
			return cmp.Or(byPriority, byUsage(&a, &b, signal))
		}
		return cmp.Or(byExcess(&a, &b, signal), byPriority, byUsage(&a, &b, signal))
	})
}

// byExcess puts those first that use more than they have asked for.
func byExcess(a, b *subject, signal Signal) int {
	if a.usage == nil || b.usage == nil {
		return first(a.usage == nil, b.usage == nil)
	}
	return first(a.above(signal) > 0, b.above(signal) > 0)
}

// byUsage puts those first that use most beyond their requests.
func byUsage(a, b *subject, signal Signal) int {
	if a.usage == nil || b.usage == nil {
		return first(a.usage == nil, b.usage == nil)
	}
	return cmp.Compare(b.above(signal), a.above(signal))
}

// first puts true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func priority(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
