package journal

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// mark stores a word of a pod, as the smallest record that there is.
func mark(d *Durable, uid types.UID, word string) error {
	return d.SetPodAllocation(uid, podstatus.Allocation{Containers: map[string]v1.ResourceRequirements{word: {}}})
}

func marked(d *Durable, uid types.UID) (word string, ok bool) {
	allocation, ok := d.GetPodAllocation(uid)
	for word = range allocation.Containers {
	}
	return word, ok
}

func marks(d *Durable) map[types.UID]string {
	all := map[types.UID]string{}
	for uid := range d.AllAllocations() {
		all[uid], _ = marked(d, uid)
	}
	return all
}
