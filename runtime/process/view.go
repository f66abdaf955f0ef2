package process

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime/process/internal/namespace"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
	"github.com/statusd/statusd/volume"
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
func (r *Runtime) view(dir containerDir, pod *v1.Pod, target *v1.Container, env *variables) (*record.View, error) {
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
		m := record.Mount{Source: path.Clean(source), Target: path.Clean(mount.MountPath), ReadOnly: mount.ReadOnly || isKept(pod, mount.Name)}
		wanted = append(wanted, m)
		closed = closed || mount.ReadOnly
		view.ReadOnlyRoot = view.ReadOnlyRoot || (m.ReadOnly && m.Source == "/")
	}
	for _, m := range wanted {
		if (m.ReadOnly || closed) && m.Source != "/" {
			view.Mounts = append(view.Mounts, record.Mount{Source: m.Source, Target: m.Source, ReadOnly: m.ReadOnly})
		}
	}
	if closed {
		view.Mounts = append(view.Mounts, record.Mount{Source: dir.TerminationLog(), Target: dir.TerminationLog()})
	}
	sortMounts(view.Mounts)
	places, err := findPlaces(wanted)
	if err != nil {
		return nil, err
	}
	view.Mounts = append(view.Mounts, places...)
	if len(view.Mounts) == 0 && !view.ReadOnlyRoot && view.Hostname == "" {
		return nil, nil
	}
	return view, nil
}

// findPlaces keeps the mounts that have a place: on the machine, or inside of another mount,
// where the place is made.
func findPlaces(wanted []record.Mount) (places []record.Mount, err error) {
	sortMounts(wanted)
	for _, m := range wanted {
		usable := false
		for _, other := range places {
			if strings.HasPrefix(m.Target, other.Target+"/") {
				m.Inside, usable = other.Target, true
			}
		}
		if !usable {
			if usable, err = findPlace(m.Source, m.Target); err != nil {
				return nil, err
			}
		}
		if usable {
			places = append(places, m)
		}
	}
	return places, nil
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

// madePlaces is where mount points are made that do not exist: a file system in memory, which
// programs expect to find tokens in. Nowhere else does a container change the machine's
// directories by what it mounts; a mount path that does not exist is handed over by its variable
// alone.
const madePlaces = "/run"

// findPlace reports whether something can be mounted at a path of the machine.
func findPlace(source, target string) (bool, error) {
	from, err := os.Stat(source)
	if err != nil {
		return false, nil // a hostPath that does not exist yet
	}
	at, err := os.Stat(target)
	switch {
	case err == nil:
		return target != "/" && at.IsDir() == from.IsDir(), nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	if inside, ok := strings.CutPrefix(target, "/var/run/"); ok && sameFile("/var/run", madePlaces) {
		target = filepath.Join(madePlaces, inside)
	}
	inside, ok := strings.CutPrefix(target, madePlaces+"/")
	if !ok {
		return false, nil
	}
	return true, makePlace(inside, from.IsDir())
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// makePlace makes an empty directory or file to mount over.
func makePlace(inside string, dir bool) error {
	root, err := os.OpenRoot(madePlaces)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir {
		return root.MkdirAll(inside, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(inside), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(inside, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}
