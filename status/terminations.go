package status

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
)

// terminations bounds what the journal keeps of the ends of containers. An end is of use from
// when it was observed until the API server has a status in which the container has been
// replaced by its successors.
type terminations struct {
	// mu guards unnamed: the containers whose end was recorded, and which no accepted status
	// has named since. Their report may still be on its way.
	mu      sync.Mutex
	unnamed map[types.UID]map[string]v1.ContainerStateTerminated
}

func (t *terminations) recorded(uid types.UID, containerID string, how v1.ContainerStateTerminated) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unnamed == nil {
		t.unnamed = make(map[types.UID]map[string]v1.ContainerStateTerminated)
	}
	if t.unnamed[uid] == nil {
		t.unnamed[uid] = make(map[string]v1.ContainerStateTerminated)
	}
	t.unnamed[uid][containerID] = how
}

// find returns a recorded end that no accepted status has named, also if the disk does not have it yet.
func (t *terminations) find(uid types.UID, containerID string) (how v1.ContainerStateTerminated, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	how, ok = t.unnamed[uid][containerID]
	return how, ok
}

// accepted returns which recorded ends of a pod are still of use once the API server has a
// status.
func (t *terminations) accepted(uid types.UID, status *v1.PodStatus) (keep func(containerID string) bool) {
	named := containerIDs(status)
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.unnamed[uid] {
		if named[id] {
			delete(t.unnamed[uid], id)
		} else {
			named[id] = true
		}
	}
	if len(t.unnamed[uid]) == 0 {
		delete(t.unnamed, uid)
	}
	return func(id string) bool { return named[id] }
}

func (t *terminations) forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.unnamed, uid)
}

// containerIDs returns the containers that a status names, as the current one or the last.
func containerIDs(status *v1.PodStatus) map[string]bool {
	ids := make(map[string]bool)
	for _, list := range podrules.ContainerLists(status) {
		for i := range list {
			ids[list[i].ContainerID] = true
			for _, end := range []*v1.ContainerStateTerminated{list[i].State.Terminated, list[i].LastTerminationState.Terminated} {
				if end != nil {
					ids[end.ContainerID] = true
				}
			}
		}
	}
	return ids
}
