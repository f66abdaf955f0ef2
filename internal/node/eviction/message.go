package eviction

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// Reason is the reason of a pod that was evicted, or refused under pressure.
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

// overLimit is why a pod has to go that uses more of the disk than it may, empty if it does not: a volume, the pod or a container, as with the kubelet.
func overLimit(pod *v1.Pod, usage *runtime.Usage) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if limit := sizeLimit(v); limit != nil && int64(usage.VolumeBytes[v.Name]) > limit.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())
		}
	}
	if limit, limited := storageLimit(pod); limited && int64(usage.DiskBytes) > limit.Value() {
		return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if limit, limited := c.Resources.Limits[v1.ResourceEphemeralStorage]; limited && int64(usage.Containers[c.Name].DiskBytes) > limit.Value() {
			return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())
		}
	}
	return ""
}

// hasLimit reports whether the usage of the pod has to be measured.
func hasLimit(pod *v1.Pod) bool {
	_, limited := storageLimit(pod)
	return limited || slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return sizeLimit(&v) != nil })
}

func sizeLimit(v *v1.Volume) *resource.Quantity {
	if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
		return nil
	}
	return v.EmptyDir.SizeLimit
}

// storageLimit is what the pod may use of the disk: the sum of the limits of its containers, or what one of its init containers may use, if that is more.
func storageLimit(pod *v1.Pod) (total resource.Quantity, limited bool) {
	var most resource.Quantity
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		limit, has := c.Resources.Limits[v1.ResourceEphemeralStorage]
		limited = limited || has
		during := total.DeepCopy()
		during.Add(limit)
		if during.Cmp(most) > 0 {
			most = during
		}
		if podstatus.IsSidecar(c) {
			total = during
		}
	}
	for i := range pod.Spec.Containers {
		limit, has := pod.Spec.Containers[i].Resources.Limits[v1.ResourceEphemeralStorage]
		limited = limited || has
		total.Add(limit)
	}
	if most.Cmp(total) > 0 {
		total = most
	}
	return total, limited
}
