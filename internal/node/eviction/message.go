package eviction

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/runtime"
)

// Reason is that of a pod that was evicted, or refused under pressure.
const Reason = "Evicted"

// describe is why a pod was evicted, in the words of the kubelet.
func describe(s *subject, t Threshold, seen Observations) string {
	name := t.Signal.resource()
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %s. ", name)
	if o, known := seen[t.Signal]; known {
		fmt.Fprintf(&b, "Threshold quantity: %s, available: %s. ",
			quantity(t.Below.Of(o.Capacity), t.Signal.format()), quantity(o.Available, t.Signal.format()))
	}
	if s.usage == nil {
		return b.String()
	}
	for _, list := range [][]v1.Container{s.pod.Spec.Containers, s.pod.Spec.InitContainers} {
		for i := range list {
			c := &list[i]
			used, known := containerUse(s.usage, c.Name, name)
			request := c.Resources.Requests[name]
			if known && int64(used) > request.Value() {
				fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %s. ",
					c.Name, quantity(used, resource.BinarySI), request.String(), name)
			}
		}
	}
	return b.String()
}

func containerUse(usage *runtime.Usage, container string, name v1.ResourceName) (used uint64, known bool) {
	u, known := usage.Containers[container]
	switch name {
	case v1.ResourceMemory:
		return u.MemoryBytes, known
	case v1.ResourceEphemeralStorage:
		return u.DiskBytes, known
	}
	return 0, false
}

func quantity(n uint64, format resource.Format) string {
	return resource.NewQuantity(int64(n), format).String()
}

// overLimit is why a pod has to go whose volume is larger than it may be, empty if none is.
func overLimit(pod *v1.Pod, usage *runtime.Usage) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		if int64(usage.VolumeBytes[v.Name]) > v.EmptyDir.SizeLimit.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, v.EmptyDir.SizeLimit.String())
		}
	}
	return ""
}

// hasLimit reports whether the pod has a volume of limited size.
func hasLimit(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if e := pod.Spec.Volumes[i].EmptyDir; e != nil && e.SizeLimit != nil && e.SizeLimit.Sign() > 0 {
			return true
		}
	}
	return false
}
