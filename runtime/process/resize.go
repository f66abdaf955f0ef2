package process

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

var (
	_ runtime.HostNetwork = (*Runtime)(nil)
	_ runtime.Resizer     = (*Runtime)(nil)
)

// SharesHostNetwork implements [runtime.HostNetwork]: a process listens on the ports of
// the machine.
func (r *Runtime) SharesHostNetwork() bool { return true }

// ResizeContainer implements [runtime.Resizer]. Without control groups there are no limits,
// which Check sees to, and requests need nothing.
func (r *Runtime) ResizeContainer(_ context.Context, id string, resources v1.ResourceRequirements) error {
	r.mu.Lock()
	c, err := r.find(id)
	running := err == nil && c.view.State != runtime.Exited
	r.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !running:
		return fmt.Errorf("process: resize %s: %w", id, runtime.ErrNotRunning)
	case !r.groups.usable() || len(c.spec.Cgroup) == 0:
		if len(resources.Limits) > 0 {
			return fmt.Errorf("process: resize %s: the container has no control group", id)
		}
		return nil
	}
	r.grouping.Lock()
	defer r.grouping.Unlock()
	if err := r.groups.hierarchy.Set(groupPath(c.uid, id), limitsOf(&resources)); err != nil {
		return fmt.Errorf("process: resize %s: %w", id, err)
	}
	return nil
}
