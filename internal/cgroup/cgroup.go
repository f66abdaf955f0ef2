// Package cgroup manages the control groups of a container for a shim and the runtime: join a
// group, kill its processes, read memory kills, remove groups. It creates no group and sets no
// limits. A group is a directory, of version 2 of the kernel's interface or of one controller of
// version 1.
package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unified reports whether a group is one of version 2.
func unified(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.controllers"))
	return err == nil
}

// Unified returns the group of version 2 among the groups, or an empty string.
func Unified(dirs []string) string {
	for _, dir := range dirs {
		if unified(dir) {
			return dir
		}
	}
	return ""
}

// JoinThread puts the calling thread into the groups of version 1; children that it starts are in
// them from their first instruction on. The goroutine must be locked to its thread and should end
// with it. For version 2, the call that starts a child also puts it into its group, since threads
// there have no groups of their own.
func JoinThread(dirs []string) error {
	for _, dir := range dirs {
		if unified(dir) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "tasks"), strconv.AppendInt(nil, int64(unix.Gettid()), 10), 0); err != nil {
			return fmt.Errorf("join control group: %w", err)
		}
	}
	return nil
}

// OOMKilled reports whether the kernel killed a process in the groups because they had
// used up their memory.
func OOMKilled(dirs []string) bool {
	for _, dir := range dirs {
		for _, file := range []string{"memory.events", "memory.oom_control"} {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err == nil && counter(data, "oom_kill") > 0 {
				return true
			}
		}
	}
	return false
}

// counter finds "NAME 123" in a file of one such line per counter.
func counter(data []byte, name string) int64 {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

// removals is how often a group that is busy is tried: a thread or a process that has
// ended stays in it until the kernel has done with it.
const removals = 20

// Remove removes empty groups. Missing groups are ignored.
func Remove(dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		err := unix.Rmdir(dir)
		for tries := 1; errors.Is(err, unix.EBUSY) && tries < removals && isEmpty(dir); tries++ {
			time.Sleep(pause)
			err = unix.Rmdir(dir)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("remove control group %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// isEmpty reports whether a group has no subgroups and no processes. Ended processes do not count.
func isEmpty(dir string) bool {
	pids, err := membersOf([]string{dir})
	entries, listErr := os.ReadDir(dir)
	if err != nil || listErr != nil {
		return false
	}
	return len(pids) == 0 && !slices.ContainsFunc(entries, fs.DirEntry.IsDir)
}
