package hostproc

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Frozen reports whether the control group of a process is frozen, as by systemctl freeze: nothing in it runs, and /proc shows no sign of that in the
// state of the process. proc is the table of processes, groups is where the control groups are mounted. What cannot be read is not frozen.
func Frozen(proc, groups string, pid int) bool {
	data, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		path := filepath.Clean("/" + parts[2])
		if slices.Contains(strings.Split(parts[1], ","), "freezer") && has(filepath.Join(groups, "freezer", path, "freezer.state"), "FROZEN") {
			return true
		}
		if parts[1] == "" && (has(filepath.Join(groups, path, "cgroup.events"), "frozen 1") || has(filepath.Join(groups, "unified", path, "cgroup.events"), "frozen 1")) {
			return true
		}
	}
	return false
}

// has reports whether a file has a line.
func has(path, line string) bool {
	data, err := os.ReadFile(path)
	return err == nil && slices.Contains(strings.Split(string(data), "\n"), line)
}
