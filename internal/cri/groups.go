package cri

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/podstatus"
)

// groups are the control groups of pods: parent/kubepods[/burstable|/besteffort]/pod<uid>, as the kubelet names them. With systemd they are slices,
// which the container runtime has systemd make, and of which no limit is set here.
type groups struct {
	parent    string
	systemd   bool
	hierarchy *cgroup.Hierarchy // nil: the container runtime makes groups, without limits of pods
}

func openGroups(parent string, systemd bool, log *slog.Logger) *groups {
	g := &groups{parent: filepath.Join("/", parent), systemd: systemd}
	if systemd {
		return g
	}
	hierarchy, err := cgroup.Open(filepath.Join(g.parent, "kubepods"))
	if err != nil {
		log.Warn("control groups of pods get no limits", "err", err)
		return g
	}
	g.hierarchy = hierarchy
	return g
}

// class is the group of pods of a quality of service, empty for guaranteed ones.
func class(pod *v1.Pod) string {
	switch podstatus.QOSClass(pod) {
	case v1.PodQOSBestEffort:
		return "besteffort"
	case v1.PodQOSBurstable:
		return "burstable"
	}
	return ""
}

// pathOf is the group of a pod below kubepods.
func pathOf(pod *v1.Pod) string { return filepath.Join(class(pod), "pod"+string(pod.UID)) }

// parentOf is the group of a pod in the words of the container runtime.
func (g *groups) parentOf(pod *v1.Pod) string {
	if !g.systemd {
		return filepath.Join(g.parent, "kubepods", pathOf(pod))
	}
	name := "kubepods"
	if c := class(pod); c != "" {
		name += "-" + c
	}
	return name + "-pod" + strings.ReplaceAll(string(pod.UID), "-", "_") + ".slice"
}

// makePod makes the group of a pod with its limits.
func (g *groups) makePod(pod *v1.Pod) error {
	if g.hierarchy == nil {
		return nil
	}
	if c := class(pod); c != "" {
		if _, err := g.hierarchy.MakeParent(c, cgroup.Limits{}); err != nil {
			return fmt.Errorf("control group: %w", err)
		}
	}
	if _, err := g.hierarchy.MakeParent(pathOf(pod), podLimits(pod)); err != nil {
		return fmt.Errorf("control group of the pod: %w", err)
	}
	return nil
}

// removePod removes the group of a pod in which nothing is left, in each hierarchy where the container runtime may have made it.
func (g *groups) removePod(pod *v1.Pod) error {
	if g.systemd {
		return nil
	}
	var errs []error
	for _, dir := range g.everywhere(pathOf(pod)) {
		errs = append(errs, removeGroup(dir))
	}
	return errors.Join(errs...)
}

// removeGroup removes a group and those below it.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range entries {
		if entry.IsDir() {
			errs = append(errs, removeGroup(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(append(errs, cgroup.Remove([]string{dir}))...)
}

// everywhere are the directories of a group below kubepods, in the hierarchy of version 2 or in each of version 1.
func (g *groups) everywhere(path string) []string {
	const root = "/sys/fs/cgroup"
	rest := filepath.Join(g.parent, "kubepods", path)
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{filepath.Join(root, rest)}
	}
	dirs, _ := filepath.Glob(filepath.Join(root, "*", rest)) // a UID has no special characters
	return dirs
}

// of are the groups of a container that exist.
func (g *groups) of(pod *v1.Pod, id string) []string {
	if g.systemd {
		return nil
	}
	return g.everywhere(filepath.Join(pathOf(pod), id))
}

// podLimits are those of a pod as a whole: the sum of its containers if each has one, or what the pod itself says.
func podLimits(pod *v1.Pod) cgroup.Limits {
	var l cgroup.Limits
	cpuLimited, memoryLimited := true, true
	var initCPU, initMemory, initRequest int64
	for _, c := range eachContainer(pod) {
		cpu, memory, request := c.Resources.Limits.Cpu().MilliValue(), c.Resources.Limits.Memory().Value(), c.Resources.Requests.Cpu().MilliValue()
		if isPlainInit(pod, c) {
			initCPU, initMemory, initRequest = max(initCPU, cpu), max(initMemory, memory), max(initRequest, request)
		} else {
			l.MilliCPU, l.Memory, l.MilliCPURequest = l.MilliCPU+cpu, l.Memory+memory, l.MilliCPURequest+request
		}
		cpuLimited, memoryLimited = cpuLimited && cpu > 0, memoryLimited && memory > 0
	}
	l.MilliCPU, l.Memory, l.MilliCPURequest = max(l.MilliCPU, initCPU), max(l.Memory, initMemory), max(l.MilliCPURequest, initRequest)
	if !cpuLimited {
		l.MilliCPU = 0
	}
	if !memoryLimited {
		l.Memory = 0
	}
	if whole := pod.Spec.Resources; whole != nil {
		if v := whole.Limits.Cpu().MilliValue(); v > 0 {
			l.MilliCPU = v
		}
		if v := whole.Limits.Memory().Value(); v > 0 {
			l.Memory = v
		}
		if v := whole.Requests.Cpu().MilliValue(); v > 0 {
			l.MilliCPURequest = v
		}
	}
	return l
}

// isPlainInit reports whether a container ends before others start.
func isPlainInit(pod *v1.Pod, c *v1.Container) bool {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == c.Name {
			return !podstatus.IsSidecar(c)
		}
	}
	return false
}

// signal sends a signal to the first process of a container, which the kernel finds by its control group whatever namespace this process is in.
func (r *Runtime) signal(c *container, name string) error {
	number := unix.SignalNum(name)
	if number == 0 {
		return fmt.Errorf("no signal %s", name)
	}
	p, err := r.place(c.uid)
	if err != nil {
		return err
	}
	for _, dir := range r.groups.of(p.manifest, c.id) {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		if pid := firstProcess(strings.Fields(string(data))); pid != 0 {
			return unix.Kill(pid, number)
		}
	}
	return errors.New("the container has no process")
}

// firstProcess is the one whose parent is none of the others.
func firstProcess(pids []string) int {
	inside := map[string]bool{}
	for _, pid := range pids {
		inside[pid] = true
	}
	for _, pid := range pids {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && !inside[fields[1]] {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	return 0
}

// stopSignals reports whether the container runtime honors lifecycle.stopSignal.
func (c *connection) stopSignals() bool {
	return c.name != "containerd" || !strings.HasPrefix(strings.TrimPrefix(c.version, "v"), "1.")
}
