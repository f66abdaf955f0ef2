package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/environ"
	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/runtime/process/internal/namespace"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// tryViews finds out why containers cannot have views of their own, nil if they can.
func tryViews(dir string) (err error) {
	if os.Geteuid() != 0 {
		return errors.New(needsRoot)
	}
	shim.OnOwnThread(func() { err = namespace.Try(dir) })
	return err
}

// memoryProblem is why volumes cannot be in memory. They are mounted where all containers of a pod and the next statusd see
// them: a mount namespace that statusd alone was started in, as by a service manager, ends with it.
func (r *Runtime) memoryProblem() string {
	if !r.views {
		return "nothing can be mounted here; leave medium out"
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	parent, parentErr := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", os.Getppid()))
	if err != nil || (parentErr == nil && parent != own) {
		return "statusd was started in a mount namespace of its own (as by ProtectSystem= of its unit), which a volume in memory would not outlive; leave medium out"
	}
	return "" // also for the first process of a container, with which everything ends
}

// view is how the machine looks to the container, nil if it looks as it is: volumes are at
// their mount paths, and what is read-only is so under each name that the container has for it.
func (r *Runtime) view(p *pod, dir containerDir, pod *v1.Pod, target *v1.Container, env *environ.Variables) (*record.View, error) {
	if !r.views {
		return nil, nil
	}
	view := &record.View{ReadOnlyRoot: isReadOnlyRoot(target)}
	if !pod.Spec.HostNetwork {
		view.Hostname = pod.Spec.Hostname
	}
	var wanted []record.Mount
	closed := view.ReadOnlyRoot // something may be read-only above what must not be
	for _, mount := range target.VolumeMounts {
		source, _ := env.Lookup(MountVariable(mount.MountPath))
		volume, err := p.volumePath(pod, mount.Name)
		if err != nil {
			return nil, err
		}
		m := record.Mount{
			Source: path.Clean(source), Within: path.Clean(volume), Target: path.Clean(mount.MountPath),
			ReadOnly: mount.ReadOnly || isKept(pod, mount.Name),
		}
		wanted = append(wanted, m)
		closed = closed || mount.ReadOnly
		view.ReadOnlyRoot = view.ReadOnlyRoot || (m.ReadOnly && m.Source == "/")
	}
	for _, m := range wanted {
		if (m.ReadOnly || closed) && m.Source != "/" {
			m.Target = m.Source
			view.Mounts = append(view.Mounts, m)
		}
	}
	if closed {
		view.Mounts = append(view.Mounts, record.Mount{Source: dir.TerminationLog(), Target: dir.TerminationLog()})
	}
	sortMounts(view.Mounts)
	wanted = append(wanted, p.etcMounts(target)...)
	if at := messagePath(target); canMountMessage(pod, target, at) {
		wanted = append(wanted, record.Mount{Source: dir.TerminationLog(), Target: at, Optional: isDefaultPath(target.TerminationMessagePath)})
	}
	if err := findPlaces(wanted); err != nil {
		return nil, err
	}
	view.Mounts = append(view.Mounts, wanted...)
	if len(view.Mounts) == 0 && !view.ReadOnlyRoot && view.Hostname == "" {
		return nil, nil
	}
	return view, nil
}

// messagePath is where a container writes its termination message to.
func messagePath(target *v1.Container) string {
	return path.Clean(cmp.Or(target.TerminationMessagePath, v1.TerminationMessagePathDefault))
}

// mountOf returns the innermost volume mount of a container that contains a path, or nil.
func mountOf(target *v1.Container, name string) (innermost *v1.VolumeMount) {
	deepest := -1
	for i := range target.VolumeMounts {
		at := path.Clean(target.VolumeMounts[i].MountPath)
		if (name == at || strings.HasPrefix(name, strings.TrimSuffix(at, "/")+"/")) && len(at) > deepest {
			innermost, deepest = &target.VolumeMounts[i], len(at)
		}
	}
	return innermost
}

// canMountMessage reports whether the termination log can be at a path. It would be made in a volume that the path is in: one
// with contents is not the container's to write to, and a hostPath keeps what is made in it, so that only a path that was asked for
// is made there.
func canMountMessage(pod *v1.Pod, target *v1.Container, at string) bool {
	mount := mountOf(target, at)
	switch {
	case mount == nil:
		return true
	case path.Clean(mount.MountPath) == at: // the container has something else there
		return false
	}
	return !isDefaultPath(target.TerminationMessagePath) || (!mount.ReadOnly && isEmptyDir(pod, mount.Name))
}

// findPlaces says of each mount whether it is inside of another one, where its place is made, and
// makes sure that the others can be where they are wanted. A mount path that does not exist is
// made in the view of the container, and never on the machine.
func findPlaces(wanted []record.Mount) error {
	sortMounts(wanted)
	for i := range wanted {
		m := &wanted[i]
		for _, other := range wanted[:i] {
			if strings.HasPrefix(m.Target, other.Target+"/") {
				m.Inside = other.Target
			}
		}
		if m.Inside != "" || m.Target == m.Source {
			continue
		}
		if err := checkPlace(*m); err != nil {
			return fmt.Errorf("mountPath %s: %w", m.Target, err)
		}
	}
	return nil
}

// checkPlace finds out whether something can be mounted, so that a container waits which cannot
// be started.
func checkPlace(m record.Mount) error {
	if m.Target == "/" {
		return errors.New("nothing can be mounted at the root directory of the machine")
	}
	dir := false // what is of no volume is a file of our own
	if m.Within != "" {
		from, err := statWithin(m.Within, m.Source)
		if err != nil {
			return err
		}
		dir = from.IsDir()
	}
	at, err := os.Stat(m.Target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case at.IsDir() && !dir:
		return errors.New("the machine has a directory there, and what is to be mounted is a file")
	case dir && !at.IsDir():
		return errors.New("the machine has a file there, and what is to be mounted is a directory")
	}
	return nil
}

// statWithin follows no link that leads out of the volume.
func statWithin(volume, name string) (fs.FileInfo, error) {
	inside, err := filepath.Rel(volume, name)
	if err != nil || inside == "." {
		return os.Stat(volume)
	}
	root, err := os.OpenRoot(volume)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(inside)
}

// sortMounts puts a directory before what is in it, so that the one does not hide the other.
func sortMounts(mounts []record.Mount) {
	slices.SortStableFunc(mounts, func(a, b record.Mount) int { return cmp.Compare(a.Target, b.Target) })
}

func isEmptyDir(pod *v1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return v.Name == name && v.EmptyDir != nil })
}

func isReadOnlyRoot(c *v1.Container) bool {
	return c.SecurityContext != nil && isTrue(c.SecurityContext.ReadOnlyRootFilesystem)
}

// isKept reports whether the contents of a volume are ours, and not for containers to change.
func isKept(pod *v1.Pod, name string) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == name {
			return volume.HasContents(&pod.Spec.Volumes[i].VolumeSource)
		}
	}
	return false
}
