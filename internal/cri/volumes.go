package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/mounts"
	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/runtime"
)

// makeVolumes makes the directory of a pod with its volumes. The contents are nil if the pod has none.
func (r *Runtime) makeVolumes(ctx context.Context, p *pod) (*podvolume.Contents, error) {
	if err := os.MkdirAll(p.dir.volumes(), 0o711); err != nil {
		return nil, err
	}
	if err := os.Chmod(string(p.dir), 0o711); err != nil {
		return nil, err
	}
	for i := range p.manifest.Spec.Volumes {
		v := &p.manifest.Spec.Volumes[i]
		if err := p.makeVolume(v); err != nil {
			return nil, &runtime.MountError{Volume: v.Name, Err: err}
		}
	}
	if !podvolume.HasContents(p.manifest) {
		return nil, nil
	}
	contents := r.contents(p)
	return contents, contents.Fill(ctx)
}

// contents are the volumes of the pod that are made of objects of the API.
func (r *Runtime) contents(p *pod) *podvolume.Contents {
	return podvolume.NewContents(p.manifest, volume.Options{
		Objects: r.options.Objects, Dir: p.volumeDir, Root: true, Isolated: true,
		Fields: func(pod *v1.Pod) volume.Fields { return r.fields(p, pod, nil) },
	})
}

// volumeDir is the directory of a volume that this runtime makes, or that a kubelet has made for the pod.
func (p *pod) volumeDir(name string) string {
	if dir := p.kubeletVolume(name); dir != "" {
		return dir
	}
	return p.dir.volume(name)
}

// removeVolumes removes what the pod has written to volumes.
func (p *pod) removeVolumes() error {
	errs := []error{removeTree(p.dir.subPaths()), removeTree(p.dir.volumes())}
	if p.kubelet != "" {
		errs = append(errs, removeTree(p.kubelet))
	}
	return errors.Join(errs...)
}

func (p *pod) makeVolume(v *v1.Volume) error {
	switch {
	case v.EmptyDir != nil:
		return podvolume.MakeEmptyDir(p.volumeDir(v.Name), v.EmptyDir, p.manifest.Spec.SecurityContext)
	case v.HostPath != nil:
		return podvolume.CheckHostPath(v.HostPath)
	case volume.HasContents(&v.VolumeSource):
		return podvolume.MakeSecretDir(p.volumeDir(v.Name), &v.VolumeSource)
	}
	return errors.New("this kind of volume is not supported")
}

// lacksMemory reports whether a volume in memory is no longer mounted.
func (p *pod) lacksMemory() bool {
	return slices.ContainsFunc(p.manifest.Spec.Volumes, func(v v1.Volume) bool {
		return (podvolume.InMemory(&v.VolumeSource) || podvolume.IsSecret(&v.VolumeSource)) && !podvolume.IsMountPoint(p.volumeDir(v.Name))
	})
}

// volumePath is the directory of a volume on the node.
func (p *pod) volumePath(name string) (string, *v1.VolumeSource, error) {
	for i := range p.manifest.Spec.Volumes {
		v := &p.manifest.Spec.Volumes[i]
		switch {
		case v.Name != name:
		case v.HostPath != nil:
			return v.HostPath.Path, &v.VolumeSource, nil
		default:
			return p.volumeDir(name), &v.VolumeSource, nil
		}
	}
	return "", nil, fmt.Errorf("there is no volume %q in the pod", name)
}

// bindSubPath mounts a sub-path of a volume on a place of its own. It opens the sub-path without leaving the volume, and mounts the opened file: a
// container that replaces the sub-path by a link meanwhile gains nothing.
func (p *pod) bindSubPath(root, subPath string, source *v1.VolumeSource, container string, n int) (string, error) {
	if !filepath.IsLocal(subPath) {
		return "", fmt.Errorf("%q is not a path inside the volume", subPath)
	}
	if !volume.HasContents(source) { // in contents volumes, a missing sub-path is a misspelled one
		if err := podvolume.MakeSubPath(root, subPath); err != nil {
			return "", err
		}
	}
	top, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(top)
	opened, err := unix.Openat2(top, subPath, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: filepath.Join(root, subPath), Err: err}
	}
	defer unix.Close(opened)
	target := filepath.Join(p.dir.subPaths(), container, fmt.Sprint(n))
	if err := makePlace(target, opened); err != nil {
		return "", err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", opened), target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("mount sub-path %s: %w", subPath, err)
	}
	return target, nil
}

// makePlace makes the directory or the file that something is mounted on.
func makePlace(target string, opened int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(opened, &stat); err != nil {
		return err
	}
	if err := unmountAll(target); err != nil {
		return err
	}
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(target, 0o711)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o711); err != nil {
		return err
	}
	return os.WriteFile(target, nil, 0o600)
}

// unmountAll unmounts everything below a path.
func unmountAll(path string) error {
	for {
		err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		switch {
		case err == nil:
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil // nothing is
		default:
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
}

// removeTree deletes a directory. Mounts in it are unmounted, and their contents are kept.
func removeTree(dir string) error { return mounts.RemoveAll(dir) }
