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
	"strconv"
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

// cgroups reads the control groups of pods. With version 2 there is one tree. With version 1, and in hybrid
// mode, there is one tree per controller; the first one with pods is read.
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
		groups := groups{h: h, proc: o.HostProc, now: now, tree: tree, found: found}
		if filepath.Dir(tree) == root && tree != root {
			groups.freezer = filepath.Join(root, "freezer")
		}
		if err := groups.kubepods(tree, maxAbove); err != nil {
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
		return nil, fmt.Errorf("%s has no cgroups: mount the host's cgroup file system there", root)
	}
	return trees, nil
}

// groups reads the groups of pods in one tree.
type groups struct {
	h    *host
	proc string
	now  time.Time
	tree string
	// freezer is the tree of version 1 with the files freezer.state; empty: the tree itself shows frozen
	// groups.
	freezer string
	found   map[types.UID]audit.Cgroup
}

// kubepods looks for the groups that the kubelet keeps its pods in, and reads them.
func (g groups) kubepods(dir string, depth int) error {
	entries, err := g.h.list(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(dir, name)
		switch {
		case !entry.IsDir() || name == "system.slice" || name == "user.slice":
		case name == "kubepods" || name == "kubepods.slice" || strings.HasSuffix(name, "-kubepods.slice"):
			if err := g.pods(path); err != nil {
				return err
			}
		case depth > 1:
			if err := g.kubepods(path, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// pods reads the groups of pods in kubepods and in the groups of its quality classes.
func (g groups) pods(dir string) error {
	entries, err := g.h.list(dir)
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
			inside := members{h: g.h, proc: g.proc}
			if err := inside.read(path, maxBelow); err != nil {
				return err
			}
			found := audit.Cgroup{Path: path, Processes: inside.count, Frozen: frozen(g.h, path, maxBelow), Stopped: inside.stopped, At: g.now}
			if g.freezer != "" {
				found.Frozen = frozen(g.h, g.freezer+strings.TrimPrefix(path, g.tree), maxBelow)
			}
			g.found[types.UID(id)] = found
		} else if name == "burstable" || name == "besteffort" || strings.HasSuffix(name, "-burstable") || strings.HasSuffix(name, "-besteffort") {
			if err := g.pods(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// frozen reports whether a group, or one below it, is frozen: cgroup.freeze of version 2, freezer.state in the freezer's tree of version 1.
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

// members are the processes of a group and of the groups below it.
type members struct {
	h     *host
	proc  string // the table of processes
	count int
	// stopped are the names of groups whose processes have all been stopped by a signal.
	stopped []string
}

// read adds the processes of a group.
func (m *members) read(dir string, depth int) error {
	data, err := os.ReadFile(m.h.path(filepath.Join(dir, "cgroup.procs")))
	// A group of threads has its processes in the group above.
	if err != nil && !vanished(err) && !errors.Is(err, syscall.EOPNOTSUPP) {
		return err
	}
	m.count += bytes.Count(data, []byte("\n"))
	if m.allStopped(data) {
		m.stopped = append(m.stopped, filepath.Base(dir))
	}
	entries, err := m.h.list(dir)
	if err != nil || depth == 0 {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := m.read(filepath.Join(dir, entry.Name()), depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// allStopped reports whether there are processes and a signal has stopped all of them. The search ends at the first running process, so
// that a group usually costs one read. A process of another PID namespace has the number 0, and is unknown.
func (m *members) allStopped(pids []byte) bool {
	any := false
	for line := range bytes.Lines(pids) {
		pid, err := strconv.Atoi(string(bytes.TrimSpace(line)))
		if err != nil || pid == 0 {
			return false
		}
		switch p, err := hostproc.Read(m.proc, pid); {
		case err != nil && !errors.Is(err, hostproc.ErrGone), err == nil && !p.Stopped() && !p.Ended():
			return false
		case err == nil && p.Stopped():
			any = true
		}
	}
	return any
}
