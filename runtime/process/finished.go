package process

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

var (
	_ runtime.VolumeRemover = (*Runtime)(nil)
	_ runtime.LogRemover    = (*Runtime)(nil)
)

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
			return fmt.Errorf("process: remove the volumes of pod %s: container %s: %w", uid, c.spec.Name, runtime.ErrContainerRunning)
		}
	}
	r.mu.Unlock()
	r.keeper.remove(uid) // it would write them again
	if err := r.removeDir(p.dir.volumes()); err != nil {
		return fmt.Errorf("process: remove the volumes of pod %s: %w", uid, err)
	}
	return nil
}

// RemoveLogs implements [runtime.LogRemover].
func (r *Runtime) RemoveLogs(_ context.Context, uid types.UID) error {
	var problems []error
	for _, c := range r.exited(uid) {
		if err := r.removeDir(c.dir.Logs()); err != nil {
			problems = append(problems, fmt.Errorf("process: remove the logs of %s: %w", c.spec.ID, err))
		}
	}
	return errors.Join(problems...)
}

// exited are the containers of a pod that have ended.
func (r *Runtime) exited(uid types.UID) []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.pods[uid]
	if !known {
		return nil
	}
	var found []*container
	for _, c := range p.containers {
		if c.view.State == runtime.Exited {
			found = append(found, c)
		}
	}
	return found
}
