package runtime

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Statser is implemented by a runtime that can measure CPU and memory of containers, cheaply enough
// for a call every few seconds. Without it, kubectl top does not show the node's pods.
type Statser interface {
	// PodStats measures the running containers of one pod. It returns [ErrNotFound] for an unknown
	// pod.
	PodStats(ctx context.Context, uid types.UID) (PodStats, error)
}

// PodStats is the resource usage of a pod.
type PodStats struct {
	// At is the time of the measurement.
	At time.Time
	// StartedAt is when the sandbox of the pod was created.
	StartedAt time.Time
	// CPU and Memory are the sums of all running containers.
	CPU    CPUStats
	Memory MemoryStats
	// Processes counts processes and their threads.
	Processes uint64
	// Containers are the running containers, ordered by name.
	Containers []ContainerStats
	// VolumeBytes are the sizes of the volumes that end with the pod, by name; nil if measuring
	// them is not cheap: see [Meter].
	VolumeBytes map[string]uint64
}

// ContainerStats is the resource usage of one container.
type ContainerStats struct {
	Name string
	ID   string
	// StartedAt is when this attempt of the container started. CPU time counts from then.
	StartedAt time.Time
	// At is the time of the measurement.
	At        time.Time
	CPU       CPUStats
	Memory    MemoryStats
	Processes uint64
	// LogBytes is the size of the logs of this attempt.
	LogBytes uint64
}

// CPUStats is the CPU usage.
type CPUStats struct {
	// Nanoseconds is the CPU time since the container started. It never decreases.
	Nanoseconds uint64
	// NanoCores is the current usage in billionths of a CPU, averaged between two measurements. Nil
	// before the second measurement.
	NanoCores *uint64
}

// MemoryStats is the memory usage, in bytes.
type MemoryStats struct {
	// WorkingSet is memory that the kernel cannot reclaim easily: the value for eviction and
	// kubectl top.
	WorkingSet uint64
	// RSS is anonymous memory.
	RSS uint64
	// Usage is all memory, including the page cache of the container.
	Usage uint64
	// PageFaults and MajorPageFaults count since the container started.
	PageFaults      uint64
	MajorPageFaults uint64
}

// AddUp sets CPU, Memory and Processes of the pod to the sums of its containers. NanoCores is set
// if it is known for each container.
func (p *PodStats) AddUp() {
	p.CPU, p.Memory, p.Processes = CPUStats{}, MemoryStats{}, 0
	var rate uint64
	known := len(p.Containers) > 0
	for i := range p.Containers {
		c := &p.Containers[i]
		p.CPU.Nanoseconds += c.CPU.Nanoseconds
		if c.CPU.NanoCores == nil {
			known = false
		} else {
			rate += *c.CPU.NanoCores
		}
		p.Memory.WorkingSet += c.Memory.WorkingSet
		p.Memory.RSS += c.Memory.RSS
		p.Memory.Usage += c.Memory.Usage
		p.Memory.PageFaults += c.Memory.PageFaults
		p.Memory.MajorPageFaults += c.Memory.MajorPageFaults
		p.Processes += c.Processes
	}
	if known {
		p.CPU.NanoCores = &rate
	}
}
