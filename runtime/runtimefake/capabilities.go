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
	_ runtime.Meter         = (*Runtime)(nil)
)

// RemoveVolumes notes the call.
func (r *Runtime) RemoveVolumes(_ context.Context, uid types.UID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.called("RemoveVolumes", string(uid)); err != nil {
		return err
	}
	if p, known := r.pods[uid]; known {
		return p.mustHaveEnded()
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
	if p, known := r.pods[uid]; known {
		for _, c := range p.containers {
			if c.State == runtime.Exited {
				c.logs = ""
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
	c, err := r.find(id)
	switch {
	case err != nil:
		return err
	case c.State != runtime.Running:
		return fmt.Errorf("runtimefake: resize %s: %w", id, runtime.ErrNotRunning)
	}
	c.resources = *resources.DeepCopy()
	return nil
}

// Resources are what a container was started with, or resized to.
func (r *Runtime) Resources(id string) v1.ResourceRequirements {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.find(id)
	if err != nil {
		panic(err) // a mistake of the test
	}
	return *c.resources.DeepCopy()
}

// PodUsage is what [Runtime.SetUsage] has set.
func (r *Runtime) PodUsage(_ context.Context, uid types.UID) (runtime.Usage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fails("PodUsage"); err != nil {
		return runtime.Usage{}, err
	}
	usage, known := r.usage[uid]
	if !known {
		return runtime.Usage{}, fmt.Errorf("runtimefake: usage of pod %s: %w", uid, runtime.ErrNotFound)
	}
	return usage, nil
}

// SetUsage sets what a pod uses.
func (r *Runtime) SetUsage(uid types.UID, usage runtime.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage[uid] = usage
}

func (p *pod) mustHaveEnded() error {
	for _, c := range p.containers {
		if c.State != runtime.Exited {
			return fmt.Errorf("runtimefake: pod %s: container %s: %w", p.Manifest.UID, c.Name, runtime.ErrContainerRunning)
		}
	}
	return nil
}
