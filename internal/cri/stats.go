package cri

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/internal/podusage"
	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/runtime"
)

// layersTime bounds the question what containers have written.
const layersTime = 5 * time.Second

// PodStats implements [runtime.Statser]: from the control groups of the containers, and where they are not known, as with systemd, from the container runtime.
func (r *Runtime) PodStats(ctx context.Context, uid types.UID) (runtime.PodStats, error) {
	p, err := r.place(uid)
	if err != nil {
		return runtime.PodStats{}, err
	}
	r.mu.Lock()
	stats := runtime.PodStats{At: time.Now(), StartedAt: p.createdAt}
	var running []*container
	for _, c := range p.containers {
		if c.view.State == runtime.Running {
			running = append(running, c)
		}
	}
	r.mu.Unlock()
	for _, c := range running {
		one, err := r.measure(ctx, p, c)
		if err != nil {
			return stats, fmt.Errorf("cri: stats of pod %s: %w", uid, err)
		}
		stats.Containers = append(stats.Containers, one)
	}
	slices.SortFunc(stats.Containers, func(a, b runtime.ContainerStats) int { return cmp.Compare(a.Name, b.Name) })
	stats.AddUp()
	return stats, nil
}

func (r *Runtime) measure(ctx context.Context, p *pod, c *container) (runtime.ContainerStats, error) {
	r.mu.Lock()
	stats := runtime.ContainerStats{Name: c.view.Name, ID: c.view.ID, StartedAt: c.view.StartedAt, At: time.Now()}
	r.mu.Unlock()
	stats.LogBytes = logBytes(c.log) // a slow disk delays no other pod
	dirs := r.groups.of(p.manifest, c.id)
	used, counted := cgroup.CPU(dirs)
	memory, measured := cgroup.MemoryOf(dirs)
	if !counted || !measured {
		return r.askStats(ctx, c, stats)
	}
	stats.CPU = c.cpu.Next(stats.At, uint64(used))
	stats.Memory = runtime.MemoryStats{
		WorkingSet: memory.WorkingSet, RSS: memory.Anonymous, Usage: memory.Usage, PageFaults: memory.PageFaults, MajorPageFaults: memory.MajorFaults,
	}
	stats.Processes = processes(dirs)
	return stats, nil
}

func (r *Runtime) askStats(ctx context.Context, c *container, stats runtime.ContainerStats) (runtime.ContainerStats, error) {
	bounded, cancel := r.ask(ctx)
	defer cancel()
	response, err := r.cri.ContainerStats(bounded, &runtimeapi.ContainerStatsRequest{ContainerId: c.id})
	if err != nil {
		return stats, err
	}
	cpu, memory := response.GetStats().GetCpu(), response.GetStats().GetMemory()
	stats.CPU = c.cpu.Next(stats.At, cpu.GetUsageCoreNanoSeconds().GetValue())
	stats.Memory = runtime.MemoryStats{
		WorkingSet: memory.GetWorkingSetBytes().GetValue(), RSS: memory.GetRssBytes().GetValue(), Usage: memory.GetUsageBytes().GetValue(),
		PageFaults: memory.GetPageFaults().GetValue(), MajorPageFaults: memory.GetMajorPageFaults().GetValue(),
	}
	return stats, nil
}

// processes counts the processes of a container, and their threads where the kernel counts them.
func processes(dirs []string) uint64 {
	var listed uint64
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, "pids.current"))
		if n, parseErr := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64); err == nil && parseErr == nil {
			return n
		}
		if data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err == nil {
			listed = max(listed, uint64(len(strings.Fields(string(data)))))
		}
	}
	return listed
}

// logBytes is the size of all files of a log.
func logBytes(log string) (total uint64) {
	files, _ := filepath.Glob(log + "*")
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			total += uint64(info.Size())
		}
	}
	return total
}

// layer is what a container has written outside of volumes.
type layer struct{ bytes, inodes uint64 }

// layers are those of the pod's containers, by ID, as the container runtime has last counted them. While it does not answer there are none: the usage
// without them is better than none, with which the pod would be the first to be evicted.
func (r *Runtime) layers(ctx context.Context, uid types.UID) map[string]layer {
	bounded, cancel := context.WithTimeout(ctx, layersTime)
	defer cancel()
	response, err := r.cri.ListContainerStats(bounded, &runtimeapi.ListContainerStatsRequest{
		Filter: &runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{labelPodUID: string(uid)}},
	})
	if err != nil {
		r.options.Logger.Debug("the container runtime does not say what containers have written", "uid", uid, "err", err)
		return nil
	}
	all := map[string]layer{}
	for _, s := range response.Stats {
		all[s.GetAttributes().GetId()] = layer{s.GetWritableLayer().GetUsedBytes().GetValue(), s.GetWritableLayer().GetInodesUsed().GetValue()}
	}
	return all
}

// PodUsage implements [runtime.Meter].
func (r *Runtime) PodUsage(ctx context.Context, uid types.UID) (runtime.Usage, error) {
	p, err := r.place(uid)
	if err != nil {
		return runtime.Usage{}, err
	}
	u := runtime.Usage{Containers: map[string]runtime.ContainerUsage{}, VolumeBytes: map[string]uint64{}}
	stats, err := r.PodStats(ctx, uid)
	if err != nil {
		return u, err
	}
	written := r.layers(ctx, uid)
	for _, c := range stats.Containers {
		own := written[bareID(c.ID)]
		u.Containers[c.Name] = runtime.ContainerUsage{MemoryBytes: c.Memory.WorkingSet, DiskBytes: c.LogBytes + own.bytes}
		u.MemoryBytes += c.Memory.WorkingSet
		u.Processes += c.Processes
	}
	for i := range p.manifest.Spec.Volumes {
		v := &p.manifest.Spec.Volumes[i]
		if v.HostPath != nil {
			continue
		}
		size, err := podusage.Measure(ctx, p.volumeDir(v.Name))
		if err != nil {
			return u, fmt.Errorf("cri: usage of pod %s: %w", uid, err)
		}
		u.VolumeBytes[v.Name] = size.Bytes
		if !podvolume.InMemory(&v.VolumeSource) {
			u.DiskBytes += size.Bytes
			u.Inodes += size.Inodes
		}
	}
	logs, err := podusage.Measure(ctx, r.logDir(p.manifest))
	if err != nil {
		return u, fmt.Errorf("cri: usage of pod %s: %w", uid, err)
	}
	u.DiskBytes += logs.Bytes
	u.Inodes += logs.Inodes
	for _, own := range written { // also of containers that have ended
		u.DiskBytes += own.bytes
		u.Inodes += own.inodes
	}
	return u, nil
}
