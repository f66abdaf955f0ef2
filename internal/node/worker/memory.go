package worker

import (
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memory hands the back-offs of containers on from Workers that have ended to the next Workers in the same process, as at a reload
// of the config. Otherwise each container that keeps failing would be started at once. The zero value works.
type Memory struct {
	mu   sync.Mutex // guards pods
	pods map[types.UID]waits
}

// waits is why and until when the containers of a pod wait.
type waits struct {
	backOffs map[string]backOff                  // by container name
	retries  map[string]retry                    // by container name
	waiting  map[string]v1.ContainerStateWaiting // by container name
	ends     map[string]time.Time                // by container ID
}

// take returns what earlier Workers have left, and forgets it.
func (m *Memory) take() map[types.UID]waits {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.pods
	m.pods = nil
	return taken
}

// keep remembers the waits of a pod whose worker ends before the pod.
func (m *Memory) keep(uid types.UID, s *state) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods == nil {
		m.pods = map[types.UID]waits{}
	}
	m.pods[uid] = waits{backOffs: s.backOffs, retries: s.retries, waiting: s.waiting, ends: s.ends}
}

// resume goes on with the waits of an earlier worker of the pod.
func (s *state) resume(w waits) {
	maps.Copy(s.backOffs, w.backOffs)
	maps.Copy(s.retries, w.retries)
	maps.Copy(s.waiting, w.waiting)
	maps.Copy(s.ends, w.ends)
}
