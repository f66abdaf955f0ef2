package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// makeVolumes makes the directories of emptyDir volumes and sees to it that hostPath
// volumes are what the pod says they are.
func (p *pod) makeVolumes() error {
	for _, volume := range p.manifest.Spec.Volumes {
		var err error
		switch {
		case volume.EmptyDir != nil:
			err = p.makeEmptyDir(volume.Name)
		case volume.HostPath != nil:
			err = checkHostPath(volume.HostPath)
		default:
			err = errors.New("this kind of volume is not supported")
		}
		if err != nil {
			return fmt.Errorf("volume %s: %w", volume.Name, err)
		}
	}
	return nil
}

// makeEmptyDir lets everybody write, as the containers of a pod may be different users.
// With an fsGroup new files belong to the group.
func (p *pod) makeEmptyDir(name string) error {
	dir := p.dir.volume(name)
	if err := makeDir(dir, 0o777); err != nil {
		return err
	}
	if context := p.manifest.Spec.SecurityContext; context != nil && context.FSGroup != nil {
		if err := os.Chown(dir, -1, int(*context.FSGroup)); err != nil {
			return err
		}
		return os.Chmod(dir, 0o777|fs.ModeSetgid)
	}
	return nil
}

func checkHostPath(source *v1.HostPathVolumeSource) error {
	if source.Type == nil || *source.Type == v1.HostPathUnset {
		return nil
	}
	if err := makeHostPath(source.Path, *source.Type); err != nil {
		return err
	}
	info, err := os.Stat(source.Path)
	if err != nil {
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	if !hasType(info.Mode(), *source.Type) {
		return fmt.Errorf("hostPath type check failed: %s is not a %s", source.Path, typeNames[*source.Type])
	}
	return nil
}

// makeHostPath makes what is to be made if missing.
func makeHostPath(path string, kind v1.HostPathType) error {
	switch kind {
	case v1.HostPathDirectoryOrCreate:
		return os.MkdirAll(path, 0o755)
	case v1.HostPathFileOrCreate:
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
		if err != nil {
			return err
		}
		return file.Close()
	}
	return nil
}

var typeNames = map[v1.HostPathType]string{
	v1.HostPathDirectory: "directory", v1.HostPathDirectoryOrCreate: "directory",
	v1.HostPathFile: "file", v1.HostPathFileOrCreate: "file",
	v1.HostPathSocket: "socket file", v1.HostPathCharDev: "character device", v1.HostPathBlockDev: "block device",
}

func hasType(mode fs.FileMode, kind v1.HostPathType) bool {
	switch kind {
	case v1.HostPathDirectory, v1.HostPathDirectoryOrCreate:
		return mode.IsDir()
	case v1.HostPathFile, v1.HostPathFileOrCreate:
		return mode.IsRegular()
	case v1.HostPathSocket:
		return mode&fs.ModeSocket != 0
	case v1.HostPathCharDev:
		return mode&fs.ModeCharDevice != 0
	case v1.HostPathBlockDev:
		return mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0
	}
	return false
}

// handOverMounts puts into the environment what would be mounted.
func (p *pod) handOverMounts(env *variables, manifest *v1.Pod, target *v1.Container) error {
	for _, mount := range target.VolumeMounts {
		path, err := p.volumePath(manifest, mount.Name)
		if err != nil {
			return err
		}
		env.set(runtime.VolumeVariable(mount.Name), path)
		if mount.SubPath != "" {
			if err := makeSubPath(path, mount.SubPath); err != nil {
				return fmt.Errorf("volume %s: subPath %s: %w", mount.Name, mount.SubPath, err)
			}
			path = filepath.Join(path, mount.SubPath)
		}
		env.set(runtime.MountVariable(mount.MountPath), path)
	}
	return nil
}

func (p *pod) volumePath(manifest *v1.Pod, name string) (string, error) {
	for _, volume := range manifest.Spec.Volumes {
		switch {
		case volume.Name != name:
		case volume.HostPath != nil:
			return volume.HostPath.Path, nil
		case volume.EmptyDir != nil:
			return p.dir.volume(name), nil
		}
	}
	return "", fmt.Errorf("there is no volume %q in the pod", name)
}

// makeSubPath makes the directory of a sub-path if nothing is there. It never leaves
// the volume, whatever links a container has put into it.
func makeSubPath(volume, subPath string) error {
	root, err := os.OpenRoot(volume)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Stat(subPath); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return root.MkdirAll(subPath, 0o777)
}
