package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Table is a snapshot of the running processes.
type Table struct {
	all      []stat
	children map[int][]stat
}

// Snapshot lists the running processes.
func Snapshot() (*Table, error) {
	all, err := snapshot()
	if err != nil {
		return nil, err
	}
	t := &Table{all: all, children: map[int][]stat{}}
	for _, s := range all {
		t.children[s.parent] = append(t.children[s.parent], s)
	}
	return t, nil
}

// Usage is the resource usage of processes.
type Usage struct {
	MemoryBytes uint64
	Threads     uint64
}

// Spent is the usage of processes since their start, and their present memory.
type Spent struct {
	CPU                     time.Duration
	PageFaults, MajorFaults uint64

	// Shared counts memory once that several processes share, Resident counts it for each of
	// them, and Anonymous is that which is not of files.
	Shared, Resident, Anonymous uint64
	Threads                     uint64
}

// tick is the unit of times in /proc: the kernel shows hundredths of seconds to programs,
// whatever it counts itself.
const tick = 10 * time.Millisecond

// SpentBelow adds up the usage of the descendants of a process, including ended ones that were waited
// for, without the process itself. It is zero if the process no longer exists.
func (t *Table) SpentBelow(ancestor ID) Spent {
	var u Spent
	for _, s := range t.all {
		if s.pid == ancestor.PID && s.start == ancestor.Start {
			u.add(s.reaped)
			t.addSpent(&u, s.pid)
		}
	}
	return u
}

func (t *Table) addSpent(u *Spent, parent int) {
	for _, s := range t.children[parent] {
		u.add(s.own)
		u.add(s.reaped)
		if !s.ended() {
			u.addMemory(s.pid)
		}
		t.addSpent(u, s.pid)
	}
}

func (u *Spent) add(s spent) {
	u.CPU += time.Duration(s.ticks) * tick
	u.PageFaults += s.faults
	u.MajorFaults += s.majorFaults
}

func (u *Spent) addMemory(pid int) {
	u.Shared += memoryOf(pid)
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return // it has just ended
	}
	resident, _ := numberAfter(data, "VmRSS:")
	anonymous, _ := numberAfter(data, "RssAnon:")
	threads, _ := numberAfter(data, "Threads:")
	u.Resident += resident << 10
	u.Anonymous += anonymous << 10
	u.Threads += threads
}

// Add adds the usage of other processes.
func (u *Spent) Add(other Spent) {
	u.CPU += other.CPU
	u.PageFaults += other.PageFaults
	u.MajorFaults += other.MajorFaults
	u.Shared += other.Shared
	u.Resident += other.Resident
	u.Anonymous += other.Anonymous
	u.Threads += other.Threads
}

// Below adds up the usage of the descendants of a process, without the process itself. It is zero if
// the process no longer exists.
func (t *Table) Below(ancestor ID) Usage {
	var u Usage
	for _, s := range t.all {
		if s.pid == ancestor.PID && s.start == ancestor.Start {
			t.add(&u, s.pid)
		}
	}
	return u
}

func (t *Table) add(u *Usage, parent int) {
	for _, s := range t.children[parent] {
		if !s.ended() {
			u.MemoryBytes += memoryOf(s.pid)
			u.Threads += threadsOf(s.pid)
		}
		t.add(u, s.pid)
	}
}

// memoryOf is the process's proportional share of the memory that it uses, or all of this memory if
// the kernel does not report shares. A process that has ended uses none.
func memoryOf(pid int) uint64 {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if data, err := os.ReadFile(filepath.Join(dir, "smaps_rollup")); err == nil {
		if kib, ok := numberAfter(data, "Pss:"); ok {
			return kib << 10
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0
	}
	kib, _ := numberAfter(data, "VmRSS:")
	return kib << 10
}

func threadsOf(pid int) uint64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	n, _ := numberAfter(data, "Threads:")
	return n
}

// numberAfter finds the number in the line that begins with a name.
func numberAfter(data []byte, name string) (uint64, bool) {
	for line := range bytes.Lines(data) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) == 0 {
			return 0, false
		}
		n, err := strconv.ParseUint(string(fields[0]), 10, 64)
		return n, err == nil
	}
	return 0, false
}
