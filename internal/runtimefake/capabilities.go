package runtimefake

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

var (
	_ runtime.VolumeRemover = (*Runtime)(nil)
	_ runtime.LogRemover    = (*Runtime)(nil)
	_ runtime.Resizer       = (*Runtime)(nil)
)

// RemoveVolumes notes the call.
func (r *Runtime) RemoveVolumes(_ context.Context, uid types.UID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.called("RemoveVolumes", string(uid)); err != nil {
		return err
	}
	if p, known := r.pods.Pods[uid]; known {
		return r.pods.MustHaveEnded(p)
	}
	return nil
}

// RemoveLogs forgets the logs of containers that have exited.
func (r *Runtime) RemoveLogs(_ context.Context, uid types.UID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.called("RemoveLogs", string(uid)); err != nil {
		return err
	}
	if p, known := r.pods.Pods[uid]; known {
		for _, c := range p.Attempts {
			if c.State == runtime.Exited {
				c.log.Remove()
			}
		}
	}
	return nil
}

// ResizeContainer remembers the resources: see [Runtime.Resources].
func (r *Runtime) ResizeContainer(_ context.Context, id string, resources v1.ResourceRequirements) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.called("ResizeContainer", id); err != nil {
		return err
	}
	c, err := r.pods.Find(id)
	switch {
	case err != nil:
		return err
	case c.State != runtime.Running:
		return fmt.Errorf("runtimefake: resize %s: %w", id, runtime.ErrNotRunning)
	}
	c.resources = *resources.DeepCopy()
	return nil
}

// Resources are the resources that a container was started with, or resized to.
func (r *Runtime) Resources(id string) v1.ResourceRequirements {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.pods.Find(id)
	if err != nil {
		panic(err) // a mistake of the test
	}
	return *c.resources.DeepCopy()
}
