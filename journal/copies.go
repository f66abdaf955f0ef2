package journal

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

func copyAllocation(a podstatus.Allocation) podstatus.Allocation {
	c := podstatus.Allocation{PodLevel: a.PodLevel.DeepCopy()}
	if a.Containers != nil {
		c.Containers = make(map[string]v1.ResourceRequirements, len(a.Containers))
		for name, resources := range a.Containers {
			c.Containers[name] = *resources.DeepCopy()
		}
	}
	return c
}

func copyConditions(r podstatus.ResizeConditions) podstatus.ResizeConditions {
	return podstatus.ResizeConditions{Pending: r.Pending.DeepCopy(), InProgress: r.InProgress.DeepCopy()}
}

func copyFinal(f podstatus.Final) podstatus.Final {
	f.Status = *f.Status.DeepCopy()
	return f
}

func copyTable[V any](table map[types.UID]V, copyValue func(V) V) map[types.UID]V {
	c := make(map[types.UID]V, len(table))
	for uid, value := range table {
		c[uid] = copyValue(value)
	}
	return c
}
