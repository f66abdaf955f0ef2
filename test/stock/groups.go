package stock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const groupRoot = "/sys/fs/cgroup"

// errGroups is what a machine says that lets root make no control groups.
var errGroups = errors.New("control groups cannot be made")

// GroupRoots are where control groups can appear: in the one hierarchy of version 2, or in each of version 1.
func GroupRoots() ([]string, error) {
	if isFile(filepath.Join(groupRoot, "cgroup.controllers")) {
		return []string{groupRoot}, nil
	}
	files, err := filepath.Glob(filepath.Join(groupRoot, "*", "cgroup.procs"))
	roots := make([]string, 0, len(files))
	for _, file := range files {
		roots = append(roots, filepath.Dir(file))
	}
	return roots, err
}

// Groups are the control groups of that name that exist.
func Groups(name string) ([]string, error) {
	roots, err := GroupRoots()
	var found []string
	for _, root := range roots {
		if group := filepath.Join(root, name); isDirectory(group) {
			found = append(found, group)
		}
	}
	return found, err
}

// makeGroups makes the control group in each hierarchy.
func makeGroups(name string) error {
	roots, err := GroupRoots()
	if err == nil && len(roots) == 0 {
		err = errors.New(groupRoot + " has none")
	}
	for _, root := range roots {
		if err == nil {
			err = os.MkdirAll(filepath.Join(root, name), 0o755)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errGroups, err)
	}
	return nil
}

// tries counts those of this process: tests that run at the same time must not remove each other's group.
var tries atomic.Int64

// groupsWritable tries it.
func groupsWritable() error {
	name := fmt.Sprintf("statusd-stock-try-%d-%d", os.Getpid(), tries.Add(1))
	return errors.Join(makeGroups(name), RemoveGroups(name))
}

// RemoveGroups removes the control groups of that name. Their processes have ended, but the kernel may
// need a moment to forget them.
func RemoveGroups(name string) error {
	left, err := Groups(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("a control group is still in use"))
	defer cancel()
	for _, group := range left {
		if err := Await(ctx, func() error { return removeTree(group) }); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a control group and those below it.
func removeTree(group string) error {
	below, err := os.ReadDir(group)
	if err != nil {
		return err
	}
	for _, entry := range below {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(group, entry.Name())); err != nil {
				return err
			}
		}
	}
	return unix.Rmdir(group)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
