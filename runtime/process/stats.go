package process

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

var _ runtime.Statser = (*Runtime)(nil)

// tableLife is how long a list of all processes is used: long enough for one round over the pods
// of a node.
const tableLife = 250 * time.Millisecond

// statistics is what is remembered between two measurements.
type statistics struct {
	mu      sync.Mutex // guards what follows
	table   *proc.Table
	tableAt time.Time
}

// processes lists what runs.
func (s *statistics) processes() (*proc.Table, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil || time.Since(s.tableAt) > tableLife {
		at := time.Now()
		table, err := proc.Snapshot()
		if err != nil {
			return nil, at, err
		}
		s.table, s.tableAt = table, at
	}
	return s.table, s.tableAt, nil
}

// PodStats implements [runtime.Statser]. CPU time and memory are read from the cgroups of the
// containers, or from their processes where cgroups are missing or do not count: shared memory is
// then divided among the processes in the working set, and counted for each process in the usage.
func (r *Runtime) PodStats(_ context.Context, uid types.UID) (runtime.PodStats, error) {
	r.mu.Lock()
	p, known := r.pods[uid]
	var running []*container
	var started []time.Time
	stats := runtime.PodStats{}
	if known {
		stats.StartedAt = p.createdAt
		for _, c := range p.containers {
			if c.view.State == runtime.Running {
				running, started = append(running, c), append(started, c.view.StartedAt)
			}
		}
	}
	r.mu.Unlock()
	if !known {
		return stats, fmt.Errorf("process: stats of pod %s: %w", uid, runtime.ErrNotFound)
	}
	table, at, err := r.statistics.processes()
	if err != nil {
		return stats, fmt.Errorf("process: stats of pod %s: %w", uid, err)
	}
	stats.At = at
	for i, c := range running {
		one := c.measure(table, at)
		one.StartedAt = started[i]
		stats.Containers = append(stats.Containers, one)
	}
	slices.SortFunc(stats.Containers, func(a, b runtime.ContainerStats) int { return cmp.Compare(a.Name, b.Name) })
	stats.AddUp()
	return stats, nil
}

func (c *container) measure(table *proc.Table, at time.Time) runtime.ContainerStats {
	stats := runtime.ContainerStats{Name: c.spec.Name, ID: c.spec.ID, LogBytes: logBytes(c.dir.Logs())}
	below := c.spent(table)
	stats.Processes = below.Threads
	stats.Memory = runtime.MemoryStats{
		WorkingSet: below.Shared, RSS: below.Anonymous, Usage: below.Resident,
		PageFaults: below.PageFaults, MajorPageFaults: below.MajorFaults,
	}
	if m, ok := cgroup.MemoryOf(c.spec.Cgroup); ok {
		stats.Memory = runtime.MemoryStats{
			WorkingSet: m.WorkingSet, RSS: m.Anonymous, Usage: m.Usage,
			PageFaults: m.PageFaults, MajorPageFaults: m.MajorFaults,
		}
	}
	used := below.CPU
	if cpu, ok := cgroup.CPU(c.spec.Cgroup); ok {
		used, at = cpu, time.Now()
	}
	stats.At = at
	stats.CPU = c.cpu.Next(at, uint64(used))
	return stats
}

// spent is what the processes below the shims of the container and of the commands that are
// executed in it have used.
func (c *container) spent(table *proc.Table) proc.Spent {
	var all proc.Spent
	var shim proc.ID
	if err := record.Read(c.dir.Shim(), &shim); err == nil { // without its shim it is being given up
		all.Add(table.SpentBelow(shim))
	}
	c.sessions.Range(func(session, _ any) bool {
		all.Add(table.SpentBelow(session.(proc.ID)))
		return true
	})
	return all
}

// logBytes is the size of the logs in a directory. What is removed meanwhile has none.
func logBytes(dir string) (total uint64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total += uint64(info.Size())
		}
	}
	return total
}
