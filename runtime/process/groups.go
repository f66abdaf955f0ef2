package process

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/podstatus"
)

// groups makes the control groups of pods and containers: parent/<uid>/<container>. A nil
// one makes none.
type groups struct {
	hierarchy *cgroup.Hierarchy
	why       string // there is no hierarchy
	parent    string
}

// openGroups finds out whether limits can be enforced. That they cannot is no error: pods
// with limits are rejected with the reason.
func openGroups(parent string, log *slog.Logger) *groups {
	if strings.Trim(parent, "/") == "" {
		return nil
	}
	hierarchy, err := cgroup.Open(parent)
	if err != nil {
		log.Info("limits cannot be enforced, pods that have any are rejected", "cgroupParent", parent, "err", err)
		return &groups{parent: parent, why: fmt.Sprintf("limits cannot be enforced, because control group %s cannot be used: %v; "+
			"name one in cgroupParent that statusd may write to, or use requests, which count for scheduling", parent, err)}
	}
	return &groups{hierarchy: hierarchy, parent: parent}
}

// leaveService takes a shim out of the group of the service that statusd may be. That it cannot is
// no reason not to run a container.
func (g *groups) leaveService(pid int, log *slog.Logger) {
	if g == nil {
		return
	}
	if err := cgroup.LeaveService(g.parent, pid); err != nil {
		log.Debug("shim stays in the control group of statusd", "pid", pid, "err", err)
	}
}

// problem is why limits cannot be enforced, empty if they can.
func (g *groups) problem() string {
	switch {
	case g == nil:
		return "limits are not enforced, because no control group for pods is configured; " +
			"name one in cgroupParent, or use requests, which count for scheduling"
	default:
		return g.why
	}
}

// close removes the parent group if nothing is in it.
func (g *groups) close() {
	if g != nil {
		cgroup.RemoveShims(g.parent)
	}
	if g.usable() {
		_ = cgroup.Remove(g.hierarchy.Dirs(""))
	}
}

func (g *groups) usable() bool { return g != nil && g.hierarchy != nil }

// make makes the groups of a container, and the groups of its pod above them.
func (g *groups) make(pod *v1.Pod, container *v1.Container, id string) ([]string, error) {
	if !g.usable() {
		return nil, nil
	}
	if _, err := g.hierarchy.MakeParent(string(pod.UID), podLimits(pod)); err != nil {
		return nil, fmt.Errorf("control group of the pod: %w", err)
	}
	dirs, err := g.hierarchy.Make(groupPath(pod.UID, id), limitsOf(&container.Resources))
	if err != nil {
		return nil, fmt.Errorf("control group: %w", err)
	}
	return dirs, nil
}

// enterGroups makes the groups of a container.
func (r *Runtime) enterGroups(pod *v1.Pod, container *v1.Container, id string) ([]string, error) {
	r.grouping.Lock()
	defer r.grouping.Unlock()
	return r.groups.make(pod, container, id)
}

func groupPath(uid types.UID, id string) string {
	return filepath.Join(string(uid), strings.TrimPrefix(id, Scheme))
}

// removePod removes the groups of a pod, and the groups of its containers that are left.
func (g *groups) removePod(uid types.UID) error {
	if !g.usable() {
		return nil
	}
	var problems []error
	for _, dir := range g.hierarchy.Dirs(string(uid)) {
		if err := os.Remove(dir); err == nil { // works without free file descriptors
			continue
		}
		entries, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		problems = append(problems, err)
		for _, entry := range entries {
			if entry.IsDir() {
				problems = append(problems, cgroup.Remove([]string{filepath.Join(dir, entry.Name())}))
			}
		}
		problems = append(problems, cgroup.Remove([]string{dir}))
	}
	return errors.Join(problems...)
}

// RemoveGroups removes the empty cgroups of pods below a parent, and the parent. A cgroup that is not empty
// belongs to another runtime and stays. A cgroup that, or a child of which, was created less than age ago
// stays too, because another runtime may be about to start a container there.
func RemoveGroups(parent string, age time.Duration) {
	g := openGroups(parent, slog.New(slog.DiscardHandler))
	if !g.usable() {
		return
	}
	defer g.close()
	for _, dir := range g.hierarchy.Dirs("") {
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if entry.IsDir() && isOld(filepath.Join(dir, entry.Name()), age) {
				_ = g.removePod(types.UID(entry.Name()))
			}
		}
	}
}

// isOld reports whether a group, and each group in it, was created at least age ago.
func isOld(group string, age time.Duration) bool {
	created := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && time.Since(info.ModTime()) < age
	}
	entries, err := os.ReadDir(group)
	return err == nil && !created(group) && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() && created(filepath.Join(group, e.Name()))
	})
}

func limitsOf(r *v1.ResourceRequirements) cgroup.Limits {
	return cgroup.Limits{
		MilliCPU:        r.Limits.Cpu().MilliValue(),
		Memory:          r.Limits.Memory().Value(),
		MilliCPURequest: r.Requests.Cpu().MilliValue(),
	}
}

// podLimits returns the pod-level limits, and the CPU weight of all containers that run at once.
func podLimits(pod *v1.Pod) cgroup.Limits {
	var l cgroup.Limits
	if pod.Spec.Resources != nil {
		l = limitsOf(pod.Spec.Resources)
	}
	if l.MilliCPURequest > 0 {
		return l
	}
	for i := range pod.Spec.Containers {
		l.MilliCPURequest += pod.Spec.Containers[i].Resources.Requests.Cpu().MilliValue()
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podstatus.IsSidecar(c) {
			l.MilliCPURequest += c.Resources.Requests.Cpu().MilliValue()
		}
	}
	return l
}
