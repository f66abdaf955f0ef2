package process

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

var (
	_ runtime.HostNetwork   = (*Runtime)(nil)
	_ runtime.VolumeRemover = (*Runtime)(nil)
)

// SharesHostNetwork implements [runtime.HostNetwork]: a process listens on the ports of
// the machine.
func (r *Runtime) SharesHostNetwork() bool { return true }

// RemoveVolumes implements [runtime.VolumeRemover]. What hostPath volumes name is not the
// pod's and stays.
func (r *Runtime) RemoveVolumes(_ context.Context, uid types.UID) error {
	r.mu.Lock()
	p, known := r.pods[uid]
	if !known {
		r.mu.Unlock()
		return nil
	}
	for _, c := range p.containers {
		if c.view.State != runtime.Exited {
			r.mu.Unlock()
			return fmt.Errorf("process: remove the volumes of pod %s: container %s: %w", uid, c.spec.Name, runtime.ErrRunning)
		}
	}
	r.mu.Unlock()
	if err := r.removeDir(p.dir.volumes()); err != nil {
		return fmt.Errorf("process: remove the volumes of pod %s: %w", uid, err)
	}
	return nil
}
