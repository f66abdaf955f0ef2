// Package namespace gives a thread a view of the machine of its own: volumes at their mount
// paths, read-only where asked, and a host name. Children that the thread starts inherit the
// view; the rest of the process does not see it. It needs CAP_SYS_ADMIN and CAP_SYS_CHROOT.
//
// Everything is opened before anything is mounted, and is mounted by descriptor: a path inside a
// volume is resolved once, beneath the volume, so that no link that a container puts there leads
// out of it. Copies of mounts are made before the view becomes read-only, and no attribute of a
// mount is ever cleared: what the machine has made read-only stays so.
package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// Enter gives the calling thread the view. The goroutine must be locked to its thread and
// must end without unlocking it.
func Enter(view *record.View) error {
	if view == nil {
		return nil
	}
	if hasMounts(view) {
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

// Join gives the calling thread, like [Enter], the view of a process that was started from a thread
// after Enter.
func Join(pidfd int, view *record.View) error {
	kinds := 0
	if view != nil && hasMounts(view) {
		kinds |= unix.CLONE_NEWNS
	}
	if view != nil && view.Hostname != "" {
		kinds |= unix.CLONE_NEWUTS
	}
	if kinds == 0 {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // threads share their root directory
		return fmt.Errorf("separate the root directory: %w", err)
	}
	if err := unix.Setns(pidfd, kinds); err != nil {
		return fmt.Errorf("join the namespaces of the container: %w", err)
	}
	return nil
}

func hasMounts(view *record.View) bool { return len(view.Mounts) > 0 || view.ReadOnlyRoot }

// tree is a copy of a mount with all that is mounted below it, which is not attached yet.
type tree struct {
	record.Mount
	fd   int
	dir  bool
	left bool // it has no place
}

// writable stay as they are below a read-only root, as in other runtimes.
var writable = []string{"/proc", "/dev/shm"}

func mountAll(view *record.View) error {
	if err := separate(); err != nil {
		return err
	}
	var trees []tree
	defer func() {
		for _, t := range trees {
			unix.Close(t.fd)
		}
	}()
	copyTree := func(mount record.Mount) error {
		t, err := newTree(mount)
		if err != nil {
			return fmt.Errorf("mount %s at %s: %w", mount.Source, mount.Target, err)
		}
		trees = append(trees, t)
		return nil
	}
	if view.ReadOnlyRoot {
		for _, dir := range writable {
			if err := copyTree(record.Mount{Source: dir, Target: dir}); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, mount := range view.Mounts {
		if err := copyTree(mount); err != nil {
			return err
		}
	}
	if view.ReadOnlyRoot {
		if err := setReadOnly(unix.AT_FDCWD, "/", unix.AT_RECURSIVE); err != nil {
			return fmt.Errorf("make the root file system read-only: %w", err)
		}
	}
	return attachAll(trees, view.ReadOnlyRoot)
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

func newTree(mount record.Mount) (tree, error) {
	source, err := openSource(mount)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(source)
	dir, err := isDir(source)
	if err != nil {
		return tree{}, err
	}
	fd, err := unix.OpenTree(source, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return tree{}, err
	}
	if mount.ReadOnly {
		if err := setReadOnly(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
			return tree{}, errors.Join(err, unix.Close(fd))
		}
	}
	return tree{Mount: mount, fd: fd, dir: dir}, nil
}

// attachAll attaches other looks at the same places first, then makes the places that are missing: a look at a directory
// would hide what covers it, and a directory that is covered shows what is mounted in it. The rest comes last, because what is
// mounted in a place that is made would be covered.
func attachAll(trees []tree, readOnly bool) error {
	var made places
	defer made.close()
	attach := func(looks bool) error {
		for _, t := range trees {
			if t.isLook() != looks || t.left {
				continue
			}
			if err := t.attach(); err != nil {
				return fmt.Errorf("mount %s at %s: %w", t.Source, t.Target, err)
			}
		}
		return nil
	}
	if err := attach(true); err != nil {
		return err
	}
	for i := range trees {
		t := &trees[i]
		if t.isLook() || t.Inside != "" {
			continue
		}
		err := made.ensure(t.Target, t.dir)
		if t.Optional && errors.Is(err, errNotCovered) {
			t.left = true
		} else if err != nil {
			return fmt.Errorf("mount path %s: %w", t.Target, err)
		}
	}
	if err := attach(false); err != nil {
		return err
	}
	if readOnly {
		return made.setReadOnly()
	}
	return nil
}

func (t tree) attach() error {
	at, err := t.openTarget()
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MoveMount(t.fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// isLook reports whether the tree is another look at the same place.
func (t tree) isLook() bool { return t.Target == t.Source && t.Inside == "" }

func (t tree) openTarget() (int, error) {
	switch {
	case t.isLook():
		return openSource(t.Mount)
	case t.Inside != "":
		return makeBeneath(t.Inside, t.Target, t.dir)
	default:
		return openPath(t.Target)
	}
}

// setReadOnly changes a mount, and with AT_RECURSIVE all below it.
func setReadOnly(dir int, path string, flags uint) error {
	return unix.MountSetattr(dir, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// Try creates a view with a read-only mount at a path that does not exist, and returns an error if
// that is not possible on this machine. Try changes the calling thread as Enter does.
func Try(dir string) error {
	missing := fmt.Sprintf("/statusd-mount-path-that-does-not-exist-%d-%d", os.Getpid(), time.Now().UnixNano())
	err := Enter(&record.View{Mounts: []record.Mount{{Source: dir, Target: missing, ReadOnly: true}}})
	if errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w; Linux 5.12 or newer is needed", err)
	}
	return err
}
