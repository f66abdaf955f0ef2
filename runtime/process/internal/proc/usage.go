package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
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
