package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Table is what ran at one moment.
type Table struct {
	all      []stat
	children map[int][]stat
}

// Snapshot lists what runs now.
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

// Usage is what processes use.
type Usage struct {
	MemoryBytes uint64
	Threads     uint64
}

// Spent is what processes have used since they started, and the memory that they have now.
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

// SpentBelow adds up what the descendants of a process have used, those included that have ended
// and were waited for, without the process itself. It is nothing if that is not the very
// process any more.
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

// Add adds what others use.
func (u *Spent) Add(other Spent) {
	u.CPU += other.CPU
	u.PageFaults += other.PageFaults
	u.MajorFaults += other.MajorFaults
	u.Shared += other.Shared
	u.Resident += other.Resident
	u.Anonymous += other.Anonymous
	u.Threads += other.Threads
}

// Below adds up what the descendants of a process use, without itself: nothing if it is not
// that very process any more.
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

// memoryOf is the proportional share of a process in the memory that it uses, or all of it
// where the kernel does not say. A process that has ended uses none.
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
