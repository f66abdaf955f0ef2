package cgroup

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// shims is the group of the shims, below the parent of the groups of pods.
const shims = "shims"

// followed are the hierarchies by which systemd knows which processes belong to a service: version
// 2, and where there is version 1 also one of its own.
var followed = []string{"", "name=systemd"}

// LeaveService moves a process to the group of the shims below the parent, with all its future
// children. If it stayed in the group of the service that started it, systemd would take it for a
// leftover of an earlier run at each start, count it in the service's limits, and stop the service
// if the kernel killed the process for memory.
func LeaveService(parent string, pid int) error {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer file.Close()
	return leaveService(mountPoints(bufio.NewScanner(file)), parent, pid)
}

func leaveService(mounts map[string]string, parent string, pid int) error {
	var problems []error
	for _, hierarchy := range followed {
		root, mounted := mounts[hierarchy]
		if !mounted {
			continue
		}
		dir := filepath.Join(root, parent, shims)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, os.WriteFile(filepath.Join(dir, "cgroup.procs"), strconv.AppendInt(nil, int64(pid), 10), 0o644))
	}
	return errors.Join(problems...)
}

// RemoveShims removes the groups that [LeaveService] has made, if nothing is in them.
func RemoveShims(parent string) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return
	}
	defer file.Close()
	mounts := mountPoints(bufio.NewScanner(file))
	for _, hierarchy := range followed {
		if root, mounted := mounts[hierarchy]; mounted {
			dir := filepath.Join(root, parent)
			if err := os.Remove(filepath.Join(dir, shims)); err == nil || errors.Is(err, fs.ErrNotExist) {
				_ = os.Remove(dir)
			}
		}
	}
}
