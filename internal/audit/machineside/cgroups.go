package machineside

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/hostproc"
)

// podCgroup matches the name of a pod's control group: podUID of the cgroupfs driver, or
// kubepods-burstable-podUID.slice of the systemd driver, where the UID has underscores.
var podCgroup = regexp.MustCompile(`^(?:[a-z0-9.-]*-)?pod([0-9a-f_-]{32,36})(?:\.slice)?$`)

// How deep the groups are: below the root until kubepods, and below a pod.
const (
	maxAbove = 4
	maxBelow = 6
)

// cgroups reads the control groups of pods. With version 2 there is one tree; with version 1, and in hybrid
// mode, one per controller, of which the first that has pods is read.
func cgroups(h *host, o Options, now time.Time) (map[types.UID]audit.Cgroup, error) {
	root, err := hostproc.Resolve(h.root, o.CgroupRoot)
	if err != nil {
		return nil, err
	}
	trees, err := hierarchies(h, root)
	if err != nil {
		return nil, fmt.Errorf("control groups: %w", err)
	}
	found := map[types.UID]audit.Cgroup{}
	for _, tree := range trees {
		if err := kubepods(h, tree, maxAbove, now, found); err != nil {
			return nil, fmt.Errorf("control groups: %w", err)
		}
		if len(found) > 0 {
			break
		}
	}
	return found, nil
}

// hierarchies returns the trees of control groups.
func hierarchies(h *host, root string) ([]string, error) {
	if _, err := os.Stat(h.path(filepath.Join(root, "cgroup.controllers"))); err == nil {
		return []string{root}, nil
	}
	entries, err := os.ReadDir(h.path(root))
	if err != nil {
		return nil, err
	}
	var trees []string
	// A tree whose controller kills or counts processes has every process of a pod.
	for _, name := range []string{"pids", "memory", "cpu", "cpu,cpuacct", "systemd", "unified"} {
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name }) {
			trees = append(trees, filepath.Join(root, name))
		}
	}
	if len(trees) == 0 {
		return nil, fmt.Errorf("%s has none: mount the host's cgroup file system there", root)
	}
	return trees, nil
}

// kubepods looks for the groups that the kubelet keeps its pods in, and reads them.
func kubepods(h *host, dir string, depth int, now time.Time, found map[types.UID]audit.Cgroup) error {
	entries, err := h.list(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(dir, name)
		switch {
		case !entry.IsDir() || name == "system.slice" || name == "user.slice":
		case name == "kubepods" || name == "kubepods.slice" || strings.HasSuffix(name, "-kubepods.slice"):
			if err := podGroups(h, path, now, found); err != nil {
				return err
			}
		case depth > 1:
			if err := kubepods(h, path, depth-1, now, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// podGroups reads the groups of pods in kubepods and in the groups of its quality classes.
func podGroups(h *host, dir string, now time.Time, found map[types.UID]audit.Cgroup) error {
	entries, err := h.list(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		name := strings.TrimSuffix(entry.Name(), ".slice")
		if match := podCgroup.FindStringSubmatch(entry.Name()); match != nil {
			id := strings.ReplaceAll(match[1], "_", "-")
			if !uid.MatchString(id) {
				continue
			}
			processes, err := processes(h, path, maxBelow)
			if err != nil {
				return err
			}
			found[types.UID(id)] = audit.Cgroup{Path: path, Processes: processes, Frozen: frozen(h, path, maxBelow), At: now}
		} else if name == "burstable" || name == "besteffort" || strings.HasSuffix(name, "-burstable") || strings.HasSuffix(name, "-besteffort") {
			if err := podGroups(h, path, now, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// frozen reports whether a group, or one below it, is frozen: cgroup.freeze of version 2, freezer.state of version 1 where that controller has
// the tree.
func frozen(h *host, dir string, depth int) bool {
	for file, word := range map[string]string{"cgroup.freeze": "1", "freezer.state": "FROZEN"} {
		if data, err := os.ReadFile(h.path(filepath.Join(dir, file))); err == nil && strings.TrimSpace(string(data)) == word {
			return true
		}
	}
	entries, err := h.list(dir)
	if err != nil || depth == 0 {
		return false
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() && frozen(h, filepath.Join(dir, e.Name()), depth-1)
	})
}

// processes counts those of a group and of the groups below it.
func processes(h *host, dir string, depth int) (int, error) {
	data, err := os.ReadFile(h.path(filepath.Join(dir, "cgroup.procs")))
	// A group of threads has its processes in the group above.
	if err != nil && !vanished(err) && !errors.Is(err, syscall.EOPNOTSUPP) {
		return 0, err
	}
	count := bytes.Count(data, []byte("\n"))
	entries, err := h.list(dir)
	if err != nil || depth == 0 {
		return count, err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			below, err := processes(h, filepath.Join(dir, entry.Name()), depth-1)
			if err != nil {
				return 0, err
			}
			count += below
		}
	}
	return count, nil
}
