package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	contents "github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/runtime"
)

// makeVolumes makes the directories of emptyDir volumes and sees to it that hostPath
// volumes are what the pod says they are.
func (p *pod) makeVolumes() error {
	for _, volume := range p.manifest.Spec.Volumes {
		var err error
		switch {
		case len(validation.IsDNS1123Label(volume.Name)) > 0:
			err = errors.New("the name cannot be that of a directory") // the API server allows no such name
		case volume.EmptyDir != nil:
			err = p.makeEmptyDir(volume.Name)
		case volume.HostPath != nil:
			err = checkHostPath(volume.HostPath)
		case contents.HasContents(&volume.VolumeSource): // the keeper fills it
		default:
			err = errors.New("this kind of volume is not supported")
		}
		if err != nil {
			return &runtime.MountError{Volume: volume.Name, Err: err}
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
		if _, err := os.Stat(source.Path); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return makeHostPath(source.Path, v1.HostPathDirectoryOrCreate) // as container runtimes do
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
		env.set(VolumeVariable(mount.Name), path)
		if mount.SubPathExpr != "" {
			continue // it may refer to what the container defines
		}
		if err := p.handOver(env, manifest, mount, path, mount.SubPath); err != nil {
			return err
		}
	}
	return nil
}

// handOverExpanded does the rest of that when all other variables are known.
func (p *pod) handOverExpanded(env *variables, manifest *v1.Pod, target *v1.Container) error {
	for _, mount := range target.VolumeMounts {
		if mount.SubPathExpr == "" {
			continue
		}
		subPath, err := expandPath(mount.SubPathExpr, env)
		if err != nil {
			return fmt.Errorf("failed to expand subPath for volumeMount %q: %w", mount.Name, err)
		}
		path, err := p.volumePath(manifest, mount.Name)
		if err != nil {
			return err
		}
		if err := p.handOver(env, manifest, mount, path, subPath); err != nil {
			return err
		}
	}
	return nil
}

// expandPath expands a path, in which all that is referred to must exist.
func expandPath(text string, env *variables) (string, error) {
	missing := ""
	path := runtime.Expand(text, func(name string) (string, bool) {
		value, known := env.lookup(name)
		if !known {
			missing = name
		}
		return value, known
	})
	if missing != "" {
		return "", fmt.Errorf("missing value for %q", missing)
	}
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("%q is not a path inside the volume", path)
	}
	return path, nil
}

func (p *pod) handOver(env *variables, manifest *v1.Pod, mount v1.VolumeMount, path, subPath string) error {
	if subPath != "" {
		if err := p.subPath(manifest, mount.Name, path, subPath); err != nil {
			return fmt.Errorf("volume %s: subPath %s: %w", mount.Name, subPath, err)
		}
		path = filepath.Join(path, subPath)
	}
	env.set(MountVariable(mount.MountPath), path)
	return nil
}

// subPath makes sure that a sub-path exists. In a volume with contents nothing is made:
// what is not there was misspelled.
func (p *pod) subPath(manifest *v1.Pod, name, path, subPath string) error {
	for i := range manifest.Spec.Volumes {
		source := &manifest.Spec.Volumes[i].VolumeSource
		if manifest.Spec.Volumes[i].Name == name && contents.HasContents(source) {
			_, err := statWithin(path, filepath.Join(path, subPath))
			return err
		}
	}
	return makeSubPath(path, subPath)
}

func (p *pod) volumePath(manifest *v1.Pod, name string) (string, error) {
	for _, volume := range manifest.Spec.Volumes {
		switch {
		case volume.Name != name:
		case volume.HostPath != nil:
			return volume.HostPath.Path, nil
		case volume.EmptyDir != nil, contents.HasContents(&volume.VolumeSource):
			return p.dir.volume(name), nil
		}
	}
	return "", fmt.Errorf("there is no volume %q in the pod", name)
}

// makeSubPath makes the directory of a sub-path if nothing is there, with the mode of the
// volume: who may write to one may write to the other. It never leaves the volume, whatever
// links a container has put into it.
func makeSubPath(volume, subPath string) error {
	root, err := os.OpenRoot(volume)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Stat(subPath); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	path := ""
	for _, element := range strings.Split(filepath.Clean(subPath), "/") {
		path = filepath.Join(path, element)
		err := root.Mkdir(path, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := openUp(root, path, info.Mode()); err != nil {
			return err
		}
	}
	return nil
}

// openUp gives a new directory a mode that the umask has no say in.
func openUp(root *os.Root, path string, mode fs.FileMode) error {
	dir, err := root.OpenRoot(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Chmod(".", mode&(fs.ModePerm|fs.ModeSetgid))
}
