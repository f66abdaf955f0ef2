package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

var _ runtime.Meter = (*Runtime)(nil)

// PodUsage implements [runtime.Meter]. Memory is that of the processes of the containers,
// shared pages divided by those who share them; the shims are not the pod's.
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
		size, err := measure(ctx, p.dir.volume(volume.Name))
		if err != nil {
			return err
		}
		u.VolumeBytes[volume.Name] = size.bytes
		u.DiskBytes += size.bytes
		u.Inodes += size.inodes
	}
	for _, c := range containers {
		size, err := measure(ctx, string(c.dir.Dir))
		if err != nil {
			return err
		}
		share := u.Containers[c.spec.Name]
		share.DiskBytes += size.bytes
		u.Containers[c.spec.Name] = share
		u.DiskBytes += size.bytes
		u.Inodes += size.inodes
	}
	return nil
}

// size is what a directory takes on disk.
type size struct{ bytes, inodes uint64 }

// measure adds up what is in a directory and not on another file system. Files with several
// names count once, and what is deleted meanwhile does not count.
func measure(ctx context.Context, dir string) (size, error) {
	var total size
	var device uint64
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreGone(err)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if device == 0 {
			device = stat.Dev
		}
		if stat.Dev != device {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if stat.Nlink > 1 && !entry.IsDir() {
			if seen[stat.Ino] {
				return nil
			}
			seen[stat.Ino] = true
		}
		total.bytes += uint64(stat.Blocks) * 512
		total.inodes++
		return nil
	})
	return total, err
}

// ignoreGone forgives what is deleted while it is measured, and directories that are closed
// to us: what cannot be read counts as nothing.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}
