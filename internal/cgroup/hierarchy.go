package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// freezer is the controller of version 1 by which many processes are killed at once: see Kill. In version 2 each
// group can do so.
const freezer = "freezer"

// controllers are what limits need.
var controllers = []string{"cpu", "memory"}

// Hierarchy is where groups are made: below one directory of version 2, or below one for each
// controller of version 1.
type Hierarchy struct {
	unified bool
	roots   map[string]string // by controller; under "" in version 2
}

// Open makes the parent group, if it is not there, and makes sure that groups with limits
// can be made in it. The parent is a path from the root of the hierarchy: "/statusd".
func Open(parent string) (*Hierarchy, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	mounts := mountPoints(bufio.NewScanner(file))
	h := choose(mounts, parent)
	if h == nil {
		return nil, errors.New("the machine has no control groups for cpu and memory")
	}
	for controller, dir := range h.roots {
		err := h.openRoot(dir, parent)
		if err != nil && controller == freezer {
			delete(h.roots, freezer) // processes are killed one by one
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}

// mountPoints finds where control groups are mounted: by controller, and "" for version 2.
func mountPoints(mountinfo *bufio.Scanner) map[string]string {
	found := map[string]string{}
	for mountinfo.Scan() {
		before, after, _ := strings.Cut(mountinfo.Text(), " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if len(place) < 5 || len(kind) < 3 {
			continue
		}
		switch kind[0] {
		case "cgroup2":
			found[""] = place[4]
		case "cgroup":
			for _, option := range strings.Split(kind[2], ",") {
				found[option] = place[4]
			}
		}
	}
	return found
}

// choose takes version 2 if the controllers are there, and else version 1.
func choose(mounts map[string]string, parent string) *Hierarchy {
	if root, mounted := mounts[""]; mounted && hasAll(filepath.Join(root, "cgroup.controllers")) {
		return &Hierarchy{unified: true, roots: map[string]string{"": filepath.Join(root, parent)}}
	}
	h := &Hierarchy{roots: map[string]string{}}
	for _, controller := range controllers {
		root, mounted := mounts[controller]
		if !mounted {
			return nil
		}
		h.roots[controller] = filepath.Join(root, parent)
	}
	if root, mounted := mounts[freezer]; mounted {
		h.roots[freezer] = filepath.Join(root, parent)
	}
	return h
}

// hasAll reports whether a file lists all controllers that limits need.
func hasAll(file string) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	have := strings.Fields(string(data))
	return !slices.ContainsFunc(controllers, func(c string) bool { return !slices.Contains(have, c) })
}

// openRoot makes the parent group and, in version 2, hands the controllers down to it.
func (h *Hierarchy) openRoot(dir, parent string) error {
	root := strings.TrimSuffix(dir, filepath.Clean("/"+parent))
	for _, element := range strings.Split(strings.Trim(parent, "/"), "/") {
		if err := h.handDown(root); err != nil {
			return err
		}
		root = filepath.Join(root, element)
		if err := os.Mkdir(root, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return errors.Join(h.handDown(root), canMakeIn(root))
}

// canMakeIn returns an error if no group can be made in a parent that exists, such as that of another user's statusd.
func canMakeIn(dir string) error {
	probe := filepath.Join(dir, fmt.Sprintf("probe-%d", os.Getpid()))
	if err := os.Mkdir(probe, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Remove(probe); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// handDown makes the controllers available in the groups below one of version 2.
func (h *Hierarchy) handDown(dir string) error {
	if !h.unified || hasAll(filepath.Join(dir, "cgroup.subtree_control")) {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+strings.Join(controllers, " +")), 0)
}

// Make makes the groups of a path below the parent, with limits, and returns their
// directories. Groups above the last one must exist. It leaves nothing behind if it fails.
func (h *Hierarchy) Make(path string, limits Limits) (dirs []string, err error) {
	for _, controller := range slices.Sorted(maps.Keys(h.roots)) {
		dir := filepath.Join(h.roots[controller], path)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, Remove(dirs))
		}
		dirs = append(dirs, dir)
	}
	if err := h.Set(path, limits); err != nil {
		return nil, errors.Join(err, Remove(dirs))
	}
	return dirs, nil
}

// MakeParent makes groups that hold others.
func (h *Hierarchy) MakeParent(path string, limits Limits) (dirs []string, err error) {
	limits.parent = true
	dirs, err = h.Make(path, limits)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := h.handDown(dir); err != nil {
			return nil, errors.Join(err, Remove(dirs))
		}
	}
	return dirs, nil
}

// SetParent changes the limits of groups that exist and hold others.
func (h *Hierarchy) SetParent(path string, limits Limits) error {
	limits.parent = true
	return h.Set(path, limits)
}

// Weigh changes the weight of groups that exist, and none of their limits.
func (h *Hierarchy) Weigh(path string, milliCPURequest int64) error {
	for _, setting := range (Limits{MilliCPURequest: milliCPURequest}).settings(h.unified) {
		if setting.file != "cpu.weight" && setting.file != "cpu.shares" {
			continue
		}
		if err := h.write(path, setting); err != nil {
			return err
		}
	}
	return nil
}

// Dirs are the directories of a path below the parent, whether they exist or not.
func (h *Hierarchy) Dirs(path string) []string {
	var dirs []string
	for _, controller := range slices.Sorted(maps.Keys(h.roots)) {
		dirs = append(dirs, filepath.Join(h.roots[controller], path))
	}
	return dirs
}

// Set changes the limits of groups that exist.
func (h *Hierarchy) Set(path string, limits Limits) error {
	for _, setting := range limits.settings(h.unified) {
		if err := h.write(path, setting); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hierarchy) write(path string, s setting) error {
	if s.value == "" {
		return nil
	}
	file := filepath.Join(h.roots[s.controller], path, s.file)
	err := os.WriteFile(file, []byte(s.value), 0)
	if s.optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("set %s to %s: %w", file, s.value, err)
	}
	return nil
}
