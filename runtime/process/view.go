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

// view is how the machine looks to the container, nil if it looks as it is: volumes are at
// their mount paths, and what is read-only is so under each name that the container has for it.
func (r *Runtime) view(p *pod, dir containerDir, pod *v1.Pod, target *v1.Container, env *variables) (*record.View, error) {
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
		source, _ := env.lookup(MountVariable(mount.MountPath))
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
	if err := findPlaces(wanted); err != nil {
		return nil, err
	}
	view.Mounts = append(view.Mounts, wanted...)
	if len(view.Mounts) == 0 && !view.ReadOnlyRoot && view.Hostname == "" {
		return nil, nil
	}
	return view, nil
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
	from, err := statWithin(m.Within, m.Source)
	if err != nil {
		return err
	}
	at, err := os.Stat(m.Target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case at.IsDir() && !from.IsDir():
		return errors.New("the machine has a directory there, and what is to be mounted is a file")
	case from.IsDir() && !at.IsDir():
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
