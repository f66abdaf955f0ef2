package podvolume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// MakeEmptyDir makes a directory that each user can write to, on disk or in memory. With an fsGroup new files belong to the
// group. A directory that is there already, as after a restart of the machine, is made right again.
func MakeEmptyDir(dir string, source *v1.EmptyDirVolumeSource, security *v1.PodSecurityContext) error {
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	mode := fs.ModeDir | 0o777
	if source.Medium == v1.StorageMediumMemory {
		if err := mountMemory(dir, source); err != nil {
			return fmt.Errorf("mount a tmpfs: %w", err)
		}
		mode |= fs.ModeSticky // as the kernel makes one by default: the kubelet leaves it
	}
	if security != nil && security.FSGroup != nil {
		if err := os.Chown(dir, -1, int(*security.FSGroup)); err != nil {
			return err
		}
		mode |= fs.ModeSetgid
	}
	// A disk that takes no writes must not get in the way of what is right already.
	if info, err := os.Lstat(dir); err == nil && info.Mode() == mode {
		return nil
	}
	return os.Chmod(dir, mode&^fs.ModeDir) // the umask has no say
}

func mountMemory(dir string, source *v1.EmptyDirVolumeSource) error {
	if isMountPoint(dir) {
		return nil
	}
	data := "mode=1777"
	if source.SizeLimit != nil && source.SizeLimit.Sign() > 0 {
		data += fmt.Sprintf(",size=%d", source.SizeLimit.Value())
	}
	return unix.Mount("tmpfs", dir, "tmpfs", 0, data)
}

// isMountPoint reports whether a file system is mounted on a directory.
func isMountPoint(dir string) bool {
	var own, above unix.Stat_t
	return unix.Lstat(dir, &own) == nil && unix.Lstat(filepath.Dir(dir), &above) == nil && own.Dev != above.Dev
}

// InMemory reports whether a volume takes memory, and no disk.
func InMemory(source *v1.VolumeSource) bool {
	return source.EmptyDir != nil && source.EmptyDir.Medium == v1.StorageMediumMemory
}
