package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Memory is the memory of a group's processes, in bytes, including files cached for them.
type Memory struct {
	Usage, WorkingSet, Anonymous uint64
	PageFaults, MajorFaults      uint64
}

// CPU is the time that all processes of the groups have used, including ended ones. CPU returns
// false if no group counts CPU time.
func CPU(dirs []string) (time.Duration, bool) {
	for _, dir := range dirs {
		if data, err := os.ReadFile(filepath.Join(dir, "cpu.stat")); err == nil && unified(dir) {
			return time.Duration(counter(data, "usage_usec")) * time.Microsecond, true
		}
		// In version 1 CPU time belongs to a separate controller, which most machines mount at the same
		// place as the controller of limits.
		if n, ok := readNumber(filepath.Join(dir, "cpuacct.usage")); ok {
			return time.Duration(n), true
		}
	}
	return 0, false
}

// MemoryOf is the memory of the groups. MemoryOf returns false if no group counts memory.
func MemoryOf(dirs []string) (Memory, bool) {
	for _, dir := range dirs {
		current, prefix, anonymous := "memory.usage_in_bytes", "total_", "rss"
		if unified(dir) {
			current, prefix, anonymous = "memory.current", "", "anon"
		}
		usage, ok := readNumber(filepath.Join(dir, current))
		if !ok {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
		if err != nil {
			continue
		}
		count := func(name string) uint64 { return uint64(max(0, counter(data, prefix+name))) }
		return Memory{
			Usage:      usage,
			WorkingSet: usage - min(usage, count("inactive_file")), // the kernel takes that first
			Anonymous:  count(anonymous),
			PageFaults: count("pgfault"), MajorFaults: count("pgmajfault"),
		}, true
	}
	return Memory{}, false
}

func readNumber(path string) (uint64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}
