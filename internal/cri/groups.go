package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/podstatus"
)

const (
	groupRoot = "/sys/fs/cgroup"
	burstable = "burstable" // the group of burstable pods
	swapMax   = "memory.swap.max"
)

// killTime bounds the wait until processes in a group have ended.
const killTime = 2 * time.Second

// groups are the control groups of pods: parent/kubepods[/burstable|/besteffort]/pod<uid>, as the kubelet names them. With systemd they are slices:
// the container runtime has systemd create them, and no limit is set here.
type groups struct {
	root    string // where the machine has control groups
	parent  string
	systemd bool
	maker   string // of the groups of containers: the name of the container runtime
	log     *slog.Logger
	// weighing orders the changes of the weight of burstable pods, which follows from the pods that there are.
	weighing sync.Mutex
	// hierarchy makes groups and limits them; nil: the container runtime makes groups, without limits of pods.
	hierarchy hierarchy
}

// hierarchy is what groups needs of a [cgroup.Hierarchy].
type hierarchy interface {
	MakeParent(path string, limits cgroup.Limits) ([]string, error)
	SetParent(path string, limits cgroup.Limits) error
	Weigh(path string, milliCPURequest int64) error
}

func openGroups(parent string, systemd bool, maker string, log *slog.Logger) *groups {
	g := &groups{root: groupRoot, parent: filepath.Join("/", parent), systemd: systemd, maker: maker, log: log}
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
		return burstable
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

// makePod makes the group of a pod with its limits. Among returns the pods of the node, the pod included.
func (g *groups) makePod(pod *v1.Pod, allocatable v1.ResourceList, among func() []*v1.Pod) error {
	if g.hierarchy == nil {
		return nil
	}
	if err := g.makeClass(class(pod), among); err != nil {
		return fmt.Errorf("control group: %w", err)
	}
	if _, err := g.hierarchy.MakeParent(g.pathOf(pod), podLimits(pod)); err != nil {
		return fmt.Errorf("control group of the pod: %w", err)
	}
	if cpu := allocatable.Cpu().MilliValue(); cpu > 0 { // against the other programs of the machine
		if err := g.hierarchy.Weigh("", cpu); err != nil {
			g.log.Warn("the weight of pods against other programs cannot be set", "err", err)
		}
	}
	return nil
}

// makeClass makes the group of the pods of a quality of service, with their weight.
func (g *groups) makeClass(class string, among func() []*v1.Pod) error {
	if class == "" {
		return nil
	}
	g.weighing.Lock()
	defer g.weighing.Unlock()
	weight := cgroup.Limits{} // the least
	if class == burstable {
		weight.MilliCPURequest = burstableRequests(among())
	}
	_, err := g.hierarchy.MakeParent(class, weight)
	return err
}

// weighBurstable gives the burstable pods together the weight of their requests. Otherwise guaranteed pods would take the CPUs that burstable ones have
// requested, and best-effort pods as much as all burstable ones.
func (g *groups) weighBurstable(among func() []*v1.Pod) {
	if g.hierarchy == nil {
		return
	}
	g.weighing.Lock()
	defer g.weighing.Unlock()
	if err := g.hierarchy.Weigh(burstable, burstableRequests(among())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.log.Warn("the weight of burstable pods cannot be set", "err", err)
	}
}

func burstableRequests(pods []*v1.Pod) (milliCPU int64) {
	for _, pod := range pods {
		if class(pod) == burstable {
			milliCPU += podLimits(pod).MilliCPURequest
		}
	}
	return milliCPU
}

// resizePod changes the limits of a pod's group around a change of a container: the larger ones before it, the new ones after it.
func (g *groups) resizePod(before, after *v1.Pod, change func() error) error {
	if g.hierarchy == nil {
		return change()
	}
	path, old, next := g.pathOf(before), podLimits(before), podLimits(after)
	during := cgroup.Limits{MilliCPURequest: next.MilliCPURequest, MilliCPU: larger(old.MilliCPU, next.MilliCPU), Memory: larger(old.Memory, next.Memory)}
	if err := g.hierarchy.SetParent(path, during); err != nil {
		return fmt.Errorf("control group of the pod: %w", err)
	}
	if err := change(); err != nil {
		return err
	}
	if during == next {
		return nil
	}
	if err := g.hierarchy.SetParent(path, next); err != nil {
		return fmt.Errorf("control group of the pod: %w", err)
	}
	return nil
}

// larger is the larger of two limits, of which 0 is none.
func larger(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// withUnified adds what only control groups of version 2 have, as the kubelet does: a container that runs out of memory ends as a whole, and none is
// swapped.
func (g *groups) withUnified(pod *v1.Pod, resources *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	if !g.unified() {
		return resources
	}
	resources.Unified = map[string]string{"memory.oom.group": "1"}
	for _, dir := range g.everywhere(g.pathOf(pod)) {
		if _, err := os.Stat(filepath.Join(dir, swapMax)); err == nil { // some kernels do not limit swap
			resources.Unified[swapMax] = "0"
		}
	}
	return resources
}

// unified reports whether the machine has control groups of version 2.
func (g *groups) unified() bool {
	_, err := os.Stat(filepath.Join(g.root, "cgroup.controllers"))
	return err == nil
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
	if g.unified() {
		return []string{filepath.Join(g.root, rest)}
	}
	dirs, _ := filepath.Glob(filepath.Join(g.root, "*", rest)) // a UID has no special characters
	return dirs
}

// of are the groups of a container that exist.
func (g *groups) of(pod *v1.Pod, id string) []string {
	return g.everywhere(filepath.Join(g.pathOf(pod), g.nameOf(id)))
}

// nameOf is the group of a container in that of its pod, as the container runtime names it.
func (g *groups) nameOf(id string) string {
	switch {
	case g.maker == "cri-o" && g.systemd:
		return "crio-" + id + ".scope"
	case g.maker == "cri-o":
		return "crio-" + id
	case g.systemd:
		return "cri-containerd-" + id + ".scope"
	}
	return id
}

// podLimits are those of a pod as a whole: what its containers may have at the same time if each has a limit, or what the pod itself says.
func podLimits(pod *v1.Pod) cgroup.Limits {
	limits, requests := fit.Limits(pod), fit.Requests(pod)
	l := cgroup.Limits{MilliCPURequest: requests.Cpu().MilliValue()}
	if isLimited(pod, v1.ResourceCPU) {
		l.MilliCPU = limits.Cpu().MilliValue()
	}
	if isLimited(pod, v1.ResourceMemory) {
		l.Memory = limits.Memory().Value()
	}
	return l
}

// isLimited reports whether the pod or each of its containers has a limit of a resource.
func isLimited(pod *v1.Pod, name v1.ResourceName) bool {
	has := func(r *v1.ResourceRequirements) bool {
		limit, ok := r.Limits[name]
		return ok && !limit.IsZero()
	}
	if own := pod.Spec.Resources; own != nil && has(own) {
		return true
	}
	return !slices.ContainsFunc(eachContainer(pod), func(c *v1.Container) bool { return !has(&c.Resources) })
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
