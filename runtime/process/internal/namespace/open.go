package namespace

import (
	"errors"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// maxRaces bounds how often a path is resolved again because something on it was renamed.
const maxRaces = 100

// openBeneath opens what a path leads to below a directory, and nothing outside of it, whatever
// links are on the way.
func openBeneath(dir int, path string) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	for range maxRaces {
		fd, err = unix.Openat2(dir, path, &how)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
	return fd, err
}

// openPath opens a path of the machine, as this thread sees it.
func openPath(path string) (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) }

// openSource opens what is to be mounted.
func openSource(mount record.Mount) (int, error) {
	if mount.Within == "" || mount.Within == mount.Source {
		return openPath(mount.Source)
	}
	inside, err := filepath.Rel(mount.Within, mount.Source)
	if err != nil {
		return -1, err
	}
	root, err := openPath(mount.Within)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	return openBeneath(root, inside)
}

// makeBeneath opens a path inside of another mount and makes what is missing of it, never outside
// of that mount: a container may have put links there.
func makeBeneath(mount, path string, dir bool) (int, error) {
	inside, err := filepath.Rel(mount, path)
	if err != nil {
		return -1, err
	}
	root, err := openPath(mount)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	fd, err := openBeneath(root, inside)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	at, err := unix.Openat(root, ".", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	elements := strings.Split(inside, "/")
	for i, name := range elements {
		next, err := openBeneath(at, name)
		if errors.Is(err, unix.ENOENT) {
			next, err = makeIn(at, name, dir || i < len(elements)-1)
		}
		unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// makeIn makes an empty directory or file and opens it.
func makeIn(parent int, name string, dir bool) (int, error) {
	if dir {
		if err := unix.Mkdirat(parent, name, 0o755); err != nil {
			return -1, err
		}
		return unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	return unix.Openat(parent, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
}

func isDir(fd int) (bool, error) {
	var stat unix.Stat_t
	err := unix.Fstat(fd, &stat)
	return stat.Mode&unix.S_IFMT == unix.S_IFDIR, err
}
