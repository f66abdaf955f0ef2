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
	// A disk that refuses writes must not prevent the use of a correct directory.
	if info, err := os.Lstat(dir); err == nil && info.Mode() == mode {
		return nil
	}
	return os.Chmod(dir, mode&^fs.ModeDir) // the umask has no say
}

func mountMemory(dir string, source *v1.EmptyDirVolumeSource) error {
	data := "mode=1777"
	if source.SizeLimit != nil && source.SizeLimit.Sign() > 0 {
		data += fmt.Sprintf(",size=%d", source.SizeLimit.Value())
	}
	return mountTmpfs(dir, data)
}

func mountTmpfs(dir, data string) error {
	if IsMountPoint(dir) {
		return nil
	}
	return unix.Mount("tmpfs", dir, "tmpfs", 0, data)
}

// MakeSecretDir makes the directory of a volume whose contents must not get to a disk, as with the kubelet: secrets, tokens and files made from the pod
// itself. Without the right to mount it is an ordinary directory.
func MakeSecretDir(dir string, source *v1.VolumeSource) error {
	if !IsSecret(source) {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := mountTmpfs(dir, "mode=0700"); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	return nil
}

// Move gives the directory of a volume another path on its file system. Containers that have it mounted keep it.
func Move(from, to string) error {
	if !IsMountPoint(from) {
		return os.Rename(from, to)
	}
	if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("move %s: %w", from, err)
	}
	return unix.Unmount(from, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
}

// IsMountPoint reports whether a file system is mounted on a directory.
func IsMountPoint(dir string) bool {
	var own, above unix.Stat_t
	return unix.Lstat(dir, &own) == nil && unix.Lstat(filepath.Dir(dir), &above) == nil && own.Dev != above.Dev
}

// InMemory reports whether a volume takes memory, and no disk.
func InMemory(source *v1.VolumeSource) bool {
	return source.EmptyDir != nil && source.EmptyDir.Medium == v1.StorageMediumMemory
}

// IsSecret reports whether the contents of a volume must not get to a disk.
func IsSecret(source *v1.VolumeSource) bool {
	return source.Secret != nil || source.Projected != nil || source.DownwardAPI != nil
}
