package mounts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxTries bounds how often a name is deleted again that something is mounted on, or made in, meanwhile.
const maxTries = 16

// RemoveAll deletes a directory with its contents. Mounts in it are unmounted, and their contents are kept: the kernel's list of mounts may be
// incomplete while mounts change, so each directory is opened without crossing a mount.
func RemoveAll(dir string) error {
	if err := UnmountBelow(dir); err != nil {
		return err
	}
	parent, err := unix.Open(filepath.Dir(dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: filepath.Dir(dir), Err: err}
	}
	defer unix.Close(parent)
	return removeAt(parent, filepath.Base(dir), dir)
}

// removeAt deletes a name of a directory. The path is for errors.
func removeAt(parent int, name, path string) error {
	for range maxTries {
		err := unix.Unlinkat(parent, name, 0)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) { // EPERM is that of POSIX for a directory
			err = removeDirAt(parent, name, path)
		}
		switch {
		case err == nil || errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EXDEV): // something is mounted there
			if err := unix.Unmount(fmt.Sprintf("/proc/self/fd/%d/%s", parent, name), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
				return fmt.Errorf("%s is mounted and cannot be unmounted: %w", path, err)
			}
		case !errors.Is(err, unix.ENOTEMPTY):
			return asPathError(err, path)
		}
	}
	return fmt.Errorf("remove %s: its content keeps changing", path)
}

func asPathError(err error, path string) error {
	if known := (*fs.PathError)(nil); errors.As(err, &known) {
		return err
	}
	return &fs.PathError{Op: "remove", Path: path, Err: err}
}

// removeDirAt deletes a directory. The error EXDEV means that it is a mount.
func removeDirAt(parent int, name, path string) error {
	fd, err := unix.Openat2(parent, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(1024)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		var failed error
		for _, name := range names {
			if err := removeAt(fd, name, filepath.Join(path, name)); err != nil && failed == nil {
				failed = err
			}
		}
		if failed != nil {
			return failed
		}
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
}
