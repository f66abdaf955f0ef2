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
	p, err := r.ended(uid, "remove the volumes of", false)
	if p == nil {
		return err
	}
	r.keeper.Remove(uid) // it would write them again
	if err := r.removeDir(p.dir.volumes()); err != nil {
		return fmt.Errorf("process: remove the volumes of pod %s: %w", uid, err)
	}
	return nil
}

// ended is a pod all of whose containers have ended, nil with an error that says what cannot be done if one has not, and nil
// if the pod is not known. forget: the pod is not known from then on.
func (r *Runtime) ended(uid types.UID, what string, forget bool) (*pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.pods[uid]
	if !known {
		return nil, nil
	}
	for _, c := range p.containers {
		if c.view.State != runtime.Exited {
			return nil, fmt.Errorf("process: %s pod %s: container %s: %w", what, uid, c.spec.Name, runtime.ErrContainerRunning)
		}
	}
	if forget {
		delete(r.pods, uid)
	}
	return p, nil
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
