package runtime

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Statser is implemented by a runtime that can say what containers use of CPU and memory, and
// does so cheaply enough to be asked every few seconds. Without it, kubectl top shows nothing
// of the node's pods.
type Statser interface {
	// PodStats measures the containers of one pod that run now. It returns [ErrNotFound] for
	// a pod that the runtime does not know.
	PodStats(ctx context.Context, uid types.UID) (PodStats, error)
}

// PodStats is what a pod uses.
type PodStats struct {
	// At is when it was measured.
	At time.Time
	// StartedAt is when the pod got its place.
	StartedAt time.Time
	// CPU and Memory are those of all containers that run.
	CPU    CPUStats
	Memory MemoryStats
	// Processes counts processes and their threads.
	Processes uint64
	// Containers are those that run, ordered by name.
	Containers []ContainerStats
	// VolumeBytes are the sizes of the volumes that end with the pod, by name; nil where measuring
	// them is not cheap: see [Meter].
	VolumeBytes map[string]uint64
}

// ContainerStats is what one container uses.
type ContainerStats struct {
	Name string
	ID   string
	// StartedAt is when this attempt of the container started. CPU time counts from then.
	StartedAt time.Time
	// At is when it was measured.
	At        time.Time
	CPU       CPUStats
	Memory    MemoryStats
	Processes uint64
	// LogBytes is the size of the logs of this attempt.
	LogBytes uint64
}

// CPUStats is the use of CPUs.
type CPUStats struct {
	// Nanoseconds is CPU time since the container started. It never decreases.
	Nanoseconds uint64
	// NanoCores is the rate: billionths of a CPU, averaged between two measurements. Nil until
	// there are two.
	NanoCores *uint64
}

// MemoryStats is the use of memory, in bytes.
type MemoryStats struct {
	// WorkingSet is what the kernel cannot take back easily: what eviction and kubectl top
	// look at.
	WorkingSet uint64
	// RSS is anonymous memory.
	RSS uint64
	// Usage is all memory, with the files that are cached for the container.
	Usage uint64
	// PageFaults and MajorPageFaults count since the container started.
	PageFaults      uint64
	MajorPageFaults uint64
}

// AddUp sets CPU, Memory and Processes of the pod to the sums of its containers. The rate is known
// if that of each container is.
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
