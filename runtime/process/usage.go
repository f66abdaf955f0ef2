package process

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podusage"
	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

var _ runtime.Meter = (*Runtime)(nil)

// PodUsage implements [runtime.Meter]. Memory is the memory of the processes of the containers,
// with shared pages divided among their processes; shims do not count.
func (r *Runtime) PodUsage(ctx context.Context, uid types.UID) (runtime.Usage, error) {
	r.mu.Lock()
	p, known := r.pods[uid]
	var containers []*container
	if known {
		containers = append(containers, p.containers...)
	}
	r.mu.Unlock()
	if !known {
		return runtime.Usage{}, fmt.Errorf("process: usage of pod %s: %w", uid, runtime.ErrNotFound)
	}
	u := runtime.Usage{Containers: map[string]runtime.ContainerUsage{}, VolumeBytes: map[string]uint64{}}
	if err := r.addProcesses(&u, containers); err != nil {
		return u, fmt.Errorf("process: usage of pod %s: %w", uid, err)
	}
	if err := addFiles(ctx, &u, p, containers); err != nil {
		return u, fmt.Errorf("process: usage of pod %s: %w", uid, err)
	}
	return u, nil
}

func (r *Runtime) addProcesses(u *runtime.Usage, containers []*container) error {
	processes, err := proc.Snapshot()
	if err != nil {
		return err
	}
	for _, c := range containers {
		if r.stateOf(c) == runtime.Exited {
			continue
		}
		var shimID proc.ID
		if err := record.Read(c.dir.Shim(), &shimID); err != nil {
			continue // without its shim the container is being given up
		}
		used := processes.Below(shimID)
		share := u.Containers[c.spec.Name]
		share.MemoryBytes += used.MemoryBytes
		u.Containers[c.spec.Name] = share
		u.MemoryBytes += used.MemoryBytes
		u.Processes += used.Threads
	}
	return nil
}

// addFiles measures the volumes that end with the pod and the logs.
func addFiles(ctx context.Context, u *runtime.Usage, p *pod, containers []*container) error {
	for _, volume := range p.manifest.Spec.Volumes {
		if volume.HostPath != nil {
			continue
		}
		size, err := podusage.Measure(ctx, p.dir.volume(volume.Name))
		if err != nil {
			return err
		}
		u.VolumeBytes[volume.Name] = size.Bytes
		if podvolume.InMemory(&volume.VolumeSource) {
			u.MemoryBytes += size.Bytes // of no process
			continue
		}
		u.DiskBytes += size.Bytes
		u.Inodes += size.Inodes
	}
	for _, c := range containers {
		size, err := podusage.Measure(ctx, string(c.dir.Dir))
		if err != nil {
			return err
		}
		share := u.Containers[c.spec.Name]
		share.DiskBytes += size.Bytes
		u.Containers[c.spec.Name] = share
		u.DiskBytes += size.Bytes
		u.Inodes += size.Inodes
	}
	return nil
}
