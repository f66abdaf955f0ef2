package kubeletapi

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is the resource usage of the whole machine.
type Usage struct {
	At time.Time
	// CPUNanoseconds is the CPU time of all processes and of the kernel since boot.
	CPUNanoseconds uint64
	// NanoCores is the current CPU usage, nil if unknown.
	NanoCores *uint64
	// Memory in bytes. MemoryWorkingSet is memory in use that cannot be reclaimed easily.
	MemoryUsage, MemoryWorkingSet, MemoryAvailable, MemoryRSS uint64
	// BootedAt is when the machine was started.
	BootedAt time.Time
}

// ticksPerSecond is USER_HZ, which Linux keeps at 100 for programs.
const ticksPerSecond = 100

// readUsage reads /proc.
func readUsage() (Usage, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("server: usage: %w", err)
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Usage{}, fmt.Errorf("server: usage: %w", err)
	}
	usage := parseUsage(stat, memory)
	usage.At = time.Now()
	return usage, nil
}

// parseUsage is pure. What it does not find is zero.
func parseUsage(stat, memory []byte) (usage Usage) {
	for line := range strings.Lines(string(stat)) {
		words := strings.Fields(line)
		switch {
		case len(words) > 8 && words[0] == "cpu":
			// user nice system idle iowait irq softirq steal: all but idle, iowait and what other machines took.
			for _, at := range []int{1, 2, 3, 6, 7} {
				ticks, _ := strconv.ParseUint(words[at], 10, 64)
				usage.CPUNanoseconds += ticks * uint64(time.Second/ticksPerSecond)
			}
		case len(words) == 2 && words[0] == "btime":
			seconds, _ := strconv.ParseInt(words[1], 10, 64)
			usage.BootedAt = time.Unix(seconds, 0)
		}
	}
	kibibytes := map[string]uint64{}
	for scanner := bufio.NewScanner(bytes.NewReader(memory)); scanner.Scan(); {
		name, value, _ := strings.Cut(scanner.Text(), ":")
		kibibytes[name], _ = strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
	}
	total, free := kibibytes["MemTotal"], kibibytes["MemFree"]
	usage.MemoryUsage = (total - min(free, total)) << 10
	usage.MemoryWorkingSet = usage.MemoryUsage - min(usage.MemoryUsage, kibibytes["Inactive(file)"]<<10)
	usage.MemoryAvailable = total<<10 - usage.MemoryWorkingSet
	usage.MemoryRSS = kibibytes["AnonPages"] << 10
	return usage
}
