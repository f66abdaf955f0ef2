package load

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podcgroup"
)

const (
	// maxPods and maxDepth bound the walk through control groups.
	maxPods  = 2000
	maxDepth = 6
)

// readPods reads the control group of each pod.
func (r *Reader) readPods(l *Load, next *reading, seconds float64) error {
	groups, err := r.podGroups()
	next.cpu = map[types.UID]uint64{}
	for uid, group := range groups {
		p := PodLoad{UID: uid}
		usage, ok := group.cpu()
		if ok {
			next.cpu[uid] = usage
			if old, known := r.before.cpu[uid]; known {
				p.CPU = rate(old, usage, seconds) / 1e9
			}
		}
		p.Memory, p.OOMKills = group.memory()
		p.PIDs = number(group.file("pids", "pids.current"))
		p.Throttled = group.throttled()
		l.Pods = append(l.Pods, p)
	}
	slices.SortFunc(l.Pods, func(a, b PodLoad) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory), strings.Compare(string(a.UID), string(b.UID)))
	})
	return err
}

// group is the control group of a pod. In version 1 there is one below each controller.
type group struct {
	root string // /sys/fs/cgroup
	v2   bool
	path string // below the root, or below the controller
}

// file is a file of the group. Version 2 has all files in one directory.
func (g group) file(controller, name string) string {
	if g.v2 {
		return filepath.Join(g.root, g.path, name)
	}
	return filepath.Join(g.root, controller, g.path, name)
}

// cpu is the CPU time in nanoseconds.
func (g group) cpu() (uint64, bool) {
	if g.v2 {
		micros, ok := keys(g.file("", "cpu.stat"))["usage_usec"]
		return micros * 1000, ok
	}
	name := g.file("cpuacct", "cpuacct.usage")
	_, err := os.Stat(name)
	return number(name), err == nil
}

// memory is the working set, which cannot be taken back, as the kubelet computes it: usage without the
// file cache that is not in use.
func (g group) memory() (workingSet, kills uint64) {
	usage, inactive := g.file("memory", "memory.usage_in_bytes"), "total_inactive_file"
	if g.v2 {
		usage, inactive = g.file("", "memory.current"), "inactive_file"
	}
	total := number(usage)
	cache := keys(g.file("memory", "memory.stat"))[inactive]
	return total - min(cache, total), keys(g.file("memory", "memory.events"))["oom_kill"]
}

func (g group) throttled() float64 {
	stat := keys(g.file("cpu", "cpu.stat"))
	if stat["nr_periods"] == 0 {
		return 0
	}
	return float64(stat["nr_throttled"]) / float64(stat["nr_periods"])
}

// number returns the number in a file, 0 if the file is missing: groups may vanish at any time.
func number(name string) uint64 {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	return n
}

// keys reads a file of lines with a name and a number.
func keys(name string) map[string]uint64 {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	values := map[string]uint64{}
	for line := range strings.Lines(string(data)) {
		key, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			values[key] = n
		}
	}
	return values
}

// podGroups finds the control groups of pods.
func (r *Reader) podGroups() (map[types.UID]group, error) {
	_, err := os.Stat(filepath.Join(r.o.Cgroups, "cgroup.controllers"))
	v2 := err == nil
	root := r.o.Cgroups
	if !v2 {
		root = filepath.Join(r.o.Cgroups, "memory")
	}
	found := map[types.UID]group{}
	var walk func(path string, depth int) error
	walk = func(path string, depth int) error {
		entries, err := os.ReadDir(filepath.Join(root, path))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			below := filepath.Join(path, entry.Name())
			if !entry.IsDir() || len(found) >= maxPods {
				continue
			}
			if uid, _ := podcgroup.Split(below); uid != "" {
				found[uid] = group{root: r.o.Cgroups, v2: v2, path: below}
				continue
			}
			if depth+1 < maxDepth && (depth > 0 || hasPods(entry.Name())) {
				if err := walk(below, depth+1); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
		return nil
	}
	err = walk("", 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no such controller: then there are no groups of pods
	}
	return found, err
}

// hasPods reports whether a group at the top may have groups of pods. The others, such as those of services,
// are many and have none.
func hasPods(name string) bool {
	return !strings.HasSuffix(name, ".service") && name != "system.slice" && name != "user.slice"
}
