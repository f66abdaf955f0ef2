// Package namespace gives a thread a view of the machine of its own: volumes at their mount
// paths, read-only where asked, and a host name. Children that the thread starts inherit the
// view; the rest of the process does not see it. It needs CAP_SYS_ADMIN.
package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// Enter gives the calling thread the view. The goroutine must be locked to its thread and
// must end without unlocking it.
func Enter(view *record.View) error {
	if view == nil {
		return nil
	}
	if len(view.Mounts) > 0 || view.ReadOnlyRoot {
		if err := mountAll(view); err != nil {
			return err
		}
	}
	if view.Hostname != "" {
		if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("make a UTS namespace: %w", err)
		}
		if err := unix.Sethostname([]byte(view.Hostname)); err != nil {
			return fmt.Errorf("set the host name: %w", err)
		}
	}
	return nil
}

func mountAll(view *record.View) error {
	if err := separate(); err != nil {
		return err
	}
	if view.ReadOnlyRoot {
		if err := setReadOnly("/", true); err != nil {
			return fmt.Errorf("make the root file system read-only: %w", err)
		}
		for _, dir := range []string{"/proc", "/dev/shm"} { // as in other runtimes
			if err := setReadOnly(dir, false); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("make %s writable: %w", dir, err)
			}
		}
	}
	for _, mount := range view.Mounts {
		if err := bind(mount); err != nil {
			return fmt.Errorf("mount %s at %s: %w", mount.Source, mount.Target, err)
		}
	}
	return nil
}

// separate makes a mount namespace. What is mounted on the machine later shows up in it, and
// nothing that is mounted in it shows up on the machine.
func separate() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("separate the mount namespace: %w", err)
	}
	return nil
}

// bind mounts a file or directory, with everything that is mounted below it, at another place.
// A source that does not exist is not mounted: a hostPath may name what comes later.
func bind(mount record.Mount) error {
	from, err := os.Stat(mount.Source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if mount.Inside != "" {
		if err := makePlace(mount, from.IsDir()); err != nil {
			return err
		}
	}
	if err := unix.Mount(mount.Source, mount.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return setReadOnly(mount.Target, mount.ReadOnly)
}

// makePlace makes what is missing of a target inside of another mount, and never outside of
// it: a container may have put links there.
func makePlace(mount record.Mount, dir bool) error {
	root, err := os.OpenRoot(mount.Inside)
	if err != nil {
		return err
	}
	defer root.Close()
	inside, err := filepath.Rel(mount.Inside, mount.Target)
	if err != nil {
		return err
	}
	if _, err := root.Stat(inside); err == nil {
		return nil
	}
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

// setReadOnly changes a mount and all below it.
func setReadOnly(path string, readOnly bool) error {
	attributes := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if readOnly {
		attributes = unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	}
	return unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &attributes)
}

// Try makes a view with a read-only mount and reports why that is not possible here, nil if it
// is. It changes the calling thread as Enter does.
func Try(dir string) error {
	return Enter(&record.View{Mounts: []record.Mount{{Source: dir, Target: dir, ReadOnly: true}}})
}
