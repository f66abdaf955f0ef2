package cri

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/runtime"
)

// mounts are what a container finds at its mount paths: volumes, its hosts file and the file for its termination message.
func (r *Runtime) mounts(p *pod, manifest *v1.Pod, spec *v1.Container, env []v1.EnvVar, dir string) ([]*runtimeapi.Mount, error) {
	var all []*runtimeapi.Mount
	for i := range spec.VolumeMounts {
		mount, err := p.mount(&spec.VolumeMounts[i], spec.Name, i, env)
		if err != nil {
			return nil, err
		}
		all = append(all, mount)
	}
	taken := func(path string) bool {
		return slices.ContainsFunc(spec.VolumeMounts, func(m v1.VolumeMount) bool { return m.MountPath == path })
	}
	if !taken("/etc/hosts") {
		all = append(all, &runtimeapi.Mount{ContainerPath: "/etc/hosts", HostPath: p.dir.hosts(), SelinuxRelabel: true})
	}
	if path := spec.TerminationMessagePath; path != "" && !taken(path) {
		all = append(all, &runtimeapi.Mount{ContainerPath: path, HostPath: terminationLog(dir), SelinuxRelabel: true})
	}
	return all, nil
}

func makeTerminationLog(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	if err := os.WriteFile(terminationLog(dir), nil, 0o666); err != nil {
		return err
	}
	return os.Chmod(terminationLog(dir), 0o666) // containers may run as any user
}

// mount is one of a container's volume mounts.
func (p *pod) mount(m *v1.VolumeMount, container string, n int, env []v1.EnvVar) (*runtimeapi.Mount, error) {
	path, source, err := p.volumePath(m.Name)
	if err != nil {
		return nil, err
	}
	subPath := m.SubPath
	if m.SubPathExpr != "" {
		if subPath, err = expandPath(m.SubPathExpr, env); err != nil {
			return nil, fmt.Errorf("failed to expand subPath for volumeMount %q of container %q: %w", m.Name, container, err)
		}
	}
	if subPath != "" {
		if path, err = p.bindSubPath(path, subPath, source, container, n); err != nil {
			return nil, fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: %w", m.Name, container, err)
		}
	}
	mount := &runtimeapi.Mount{
		ContainerPath: absolute(m.MountPath), HostPath: path, SelinuxRelabel: source.HostPath == nil,
		Readonly: m.ReadOnly || volume.HasContents(source) || isReadOnly(path), UidMappings: p.mapping(), GidMappings: p.mapping(),
	}
	if m.RecursiveReadOnly != nil && *m.RecursiveReadOnly == v1.RecursiveReadOnlyEnabled {
		mount.RecursiveReadOnly = true
	}
	if m.MountPropagation != nil {
		switch *m.MountPropagation {
		case v1.MountPropagationHostToContainer:
			mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		case v1.MountPropagationBidirectional:
			mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
		}
	}
	return mount, nil
}

// isReadOnly reports whether a path of the machine is mounted read-only. Newer versions of runc would make it writable in a container that asks for that.
func isReadOnly(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}

func absolute(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// expandPath expands a path, in which all that is referred to must exist.
func expandPath(text string, env []v1.EnvVar) (string, error) {
	missing := ""
	lookup := lookupIn(env)
	path := runtime.Expand(text, func(name string) (string, bool) {
		value, known := lookup(name)
		if !known {
			missing = name
		}
		return value, known
	})
	if missing != "" {
		return "", fmt.Errorf("missing value for %q", missing)
	}
	return path, nil
}
