package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/podstatus"
)

const groupRoot = "/sys/fs/cgroup"

// killTime bounds the wait until processes in a group have ended.
const killTime = 2 * time.Second

// groups are the control groups of pods: parent/kubepods[/burstable|/besteffort]/pod<uid>, as the kubelet names them. With systemd they are slices:
// the container runtime has systemd create them, and no limit is set here.
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

// pathOf is the group of a pod below kubepods, or below kubepods.slice.
func (g *groups) pathOf(pod *v1.Pod) string {
	c := class(pod)
	switch {
	case !g.systemd:
		return filepath.Join(c, "pod"+string(pod.UID))
	case c == "":
		return sliceOf(pod)
	}
	return filepath.Join("kubepods-"+c+".slice", sliceOf(pod))
}

// sliceOf is the name of systemd's slice of a pod.
func sliceOf(pod *v1.Pod) string {
	name := "kubepods"
	if c := class(pod); c != "" {
		name += "-" + c
	}
	return name + "-pod" + strings.ReplaceAll(string(pod.UID), "-", "_") + ".slice"
}

// parentOf is the group of a pod in the words of the container runtime.
func (g *groups) parentOf(pod *v1.Pod) string {
	if g.systemd {
		return sliceOf(pod)
	}
	return filepath.Join(g.parent, "kubepods", g.pathOf(pod))
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
	if _, err := g.hierarchy.MakeParent(g.pathOf(pod), podLimits(pod)); err != nil {
		return fmt.Errorf("control group of the pod: %w", err)
	}
	return nil
}

// removePod kills the remaining processes in the group of a pod and removes the group, in each hierarchy where the container runtime may have created
// it. Processes remain if the container runtime has lost its state. systemd removes its slices itself.
func (g *groups) removePod(pod *v1.Pod) error {
	dirs := g.everywhere(g.pathOf(pod))
	if err := killBelow(dirs); err != nil || g.systemd {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, removeGroup(dir))
	}
	return errors.Join(errs...)
}

// killContainer kills the remaining processes in the group of a container.
func (g *groups) killContainer(pod *v1.Pod, id string) error { return killBelow(g.of(pod, id)) }

// killBelow ends all processes in groups and in those below them.
func killBelow(dirs []string) error {
	var all []string
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				all = append(all, path)
			}
			return nil // a group that is gone holds nothing
		})
	}
	if len(all) == 0 {
		return nil
	}
	return cgroup.Kill(all, killTime, nil)
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
	rest := filepath.Join(g.parent, "kubepods", path)
	if g.systemd {
		rest = filepath.Join("kubepods.slice", path)
	}
	if _, err := os.Stat(filepath.Join(groupRoot, "cgroup.controllers")); err == nil {
		return []string{filepath.Join(groupRoot, rest)}
	}
	dirs, _ := filepath.Glob(filepath.Join(groupRoot, "*", rest)) // a UID has no special characters
	return dirs
}

// of are the groups of a container that exist.
func (g *groups) of(pod *v1.Pod, id string) []string {
	if g.systemd {
		id = "cri-containerd-" + id + ".scope"
	}
	return g.everywhere(filepath.Join(g.pathOf(pod), id))
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

// firstProcess returns the first process whose parent is not in the list.
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
