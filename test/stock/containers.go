package stock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// PIDs are the processes of a container, by its ID with or without "containerd://", in the namespace of the caller.
func (n *Node) PIDs(container string) ([]int, error) {
	id := strings.TrimPrefix(container, "containerd://")
	groups, err := Groups(n.group)
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		if filepath.Base(filepath.Dir(group)) == "unified" {
			continue // beside hierarchies of version 1 it has no pods
		}
		pids, err := pidsBelow(group, id)
		if err != nil || len(pids) > 0 {
			return pids, err
		}
	}
	return nil, fmt.Errorf("container %s has no process", id)
}

// Pods are the UIDs of the pods that have a control group on the node: the kubelet has not finished with them.
func (n *Node) Pods() (map[types.UID]bool, error) {
	groups, err := Groups(n.group)
	uids := map[types.UID]bool{}
	for _, group := range groups {
		for _, pattern := range []string{"kubepods/pod*", "kubepods/*/pod*"} {
			found, err := filepath.Glob(filepath.Join(group, pattern))
			if err != nil {
				return nil, err
			}
			for _, path := range found {
				uids[types.UID(strings.TrimPrefix(filepath.Base(path), "pod"))] = true
			}
		}
	}
	return uids, err
}

// pidsBelow are the processes of the control group of that name, somewhere below.
func pidsBelow(group, name string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone while we walked
		}
		if err != nil || !entry.IsDir() || entry.Name() != name {
			return err
		}
		content, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(content)) {
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				return err
			}
			pids = append(pids, pid)
		}
		return fs.SkipAll
	})
	return pids, err
}

// KillContainer ends the processes of a container behind the kubelet's back, as the kernel does if
// memory runs out.
func (n *Node) KillContainer(container string) error {
	pids, err := n.PIDs(container)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d of container %s: %w", pid, container, err)
		}
	}
	return nil
}
