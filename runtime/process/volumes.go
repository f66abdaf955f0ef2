package process

import (
	"errors"
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/statusd/statusd/internal/environ"
	contents "github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/runtime"
)

// makeVolumes makes the directories of emptyDir volumes and sees to it that hostPath
// volumes are what the pod says they are.
func (p *pod) makeVolumes() error {
	for _, volume := range p.manifest.Spec.Volumes {
		var err error
		switch {
		case len(validation.IsDNS1123Label(volume.Name)) > 0:
			err = errors.New("the name cannot be used for a directory") // the API server allows no such name
		case volume.EmptyDir != nil:
			err = podvolume.MakeEmptyDir(p.dir.volume(volume.Name), volume.EmptyDir, p.manifest.Spec.SecurityContext)
		case volume.HostPath != nil:
			err = podvolume.CheckHostPath(volume.HostPath)
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

// handOverMounts puts into the environment what would be mounted.
func (p *pod) handOverMounts(env *environ.Variables, manifest *v1.Pod, target *v1.Container) error {
	for _, mount := range target.VolumeMounts {
		path, err := p.volumePath(manifest, mount.Name)
		if err != nil {
			return err
		}
		env.Set(VolumeVariable(mount.Name), path)
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
func (p *pod) handOverExpanded(env *environ.Variables, manifest *v1.Pod, target *v1.Container) error {
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
func expandPath(text string, env *environ.Variables) (string, error) {
	missing := ""
	path := runtime.Expand(text, func(name string) (string, bool) {
		value, known := env.Lookup(name)
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

func (p *pod) handOver(env *environ.Variables, manifest *v1.Pod, mount v1.VolumeMount, path, subPath string) error {
	if subPath != "" {
		if err := p.subPath(manifest, mount.Name, path, subPath); err != nil {
			return fmt.Errorf("volume %s: subPath %s: %w", mount.Name, subPath, err)
		}
		path = filepath.Join(path, subPath)
	}
	env.Set(MountVariable(mount.MountPath), path)
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
	return podvolume.MakeSubPath(path, subPath)
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
