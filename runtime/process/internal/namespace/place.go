package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// maxNames bounds how many names a directory may have that is covered.
const maxNames = 4096

// errNotCovered means that a directory cannot be covered, and is as it was.
var errNotCovered = errors.New("make the mount path on the machine")

// places are the mount paths that do not exist on the machine. None of them is made there: the
// directory that lacks a name is covered, in this view alone, by a directory in memory that has
// the missing name, and at all other names what the covered directory has.
type places struct {
	covers []int // the mounts of the directories in memory
}

func (p *places) close() {
	for _, fd := range p.covers {
		unix.Close(fd)
	}
}

func (p *places) setReadOnly() error {
	for _, fd := range p.covers {
		if err := setReadOnly(fd, "", unix.AT_EMPTY_PATH); err != nil {
			return fmt.Errorf("make a directory of mount paths read-only: %w", err)
		}
	}
	return nil
}

// ensure makes a path exist, as a directory or as a file.
func (p *places) ensure(path string, dir bool) error {
	fd, err := openPath(path)
	if err == nil {
		defer unix.Close(fd)
		if is, err := isDir(fd); err != nil || is != dir {
			return errors.Join(err, fmt.Errorf("%w: one of it and what is to be mounted there is a directory", unix.ENOTDIR))
		}
		return nil
	}
	var missing []string
	for errors.Is(err, unix.ENOENT) && path != "/" {
		missing = slices.Insert(missing, 0, filepath.Base(path))
		path = filepath.Dir(path)
		fd, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return err
	}
	if !p.isCover(fd) {
		covered := fd
		defer unix.Close(covered)
		if fd, err = p.cover(path, covered, missing[0]); err != nil {
			return fmt.Errorf("cover %s: %w", path, err)
		}
	}
	return makeAll(fd, missing, dir)
}

// makeAll makes a path in a directory in memory and closes the directory.
func makeAll(at int, elements []string, dir bool) error {
	for i, name := range elements {
		// What is there is a link that leads nowhere.
		if err := unix.Unlinkat(at, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return errors.Join(err, unix.Close(at))
		}
		next, err := makeIn(at, name, dir || i < len(elements)-1)
		unix.Close(at)
		if err != nil {
			return err
		}
		at = next
	}
	return unix.Close(at)
}

// isCover reports whether a directory is on one of the file systems in memory.
func (p *places) isCover(fd int) bool {
	var stat, cover unix.Stat_t
	if unix.Fstat(fd, &stat) != nil {
		return false
	}
	return slices.ContainsFunc(p.covers, func(c int) bool { return unix.Fstat(c, &cover) == nil && cover.Dev == stat.Dev })
}

// name is one of a covered directory.
type name struct {
	text    string
	stat    unix.Stat_t
	devices bool // those of the directory can be used
	mounted bool // something is mounted there
}

// cover covers the directory at a path and returns the one in memory.
func (p *places) cover(path string, covered int, except string) (int, error) {
	names, err := readNames(covered, except)
	if err != nil {
		return -1, fmt.Errorf("%w; %w", err, errNotCovered)
	}
	memory, err := newMemory(slices.ContainsFunc(names, name.isDevice))
	if err != nil {
		return -1, fmt.Errorf("%w; %w", err, errNotCovered)
	}
	p.covers = append(p.covers, memory)
	if err := unix.MoveMount(memory, "", covered, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return -1, err
	}
	if err := copyOwner(memory, covered); err != nil {
		return -1, err
	}
	defer unix.Umask(unix.Umask(0)) // of this thread alone: a thread with a mount namespace of its own shares its umask with no other
	for _, n := range names {
		if err := n.show(memory, covered); err != nil && !errors.Is(err, unix.ENOENT) { // removed meanwhile
			return -1, fmt.Errorf("%s: %w", n.text, err)
		}
	}
	if path == "/" {
		if err := errors.Join(unix.Fchdir(memory), unix.Chroot(".")); err != nil {
			return -1, fmt.Errorf("change the root directory: %w", err)
		}
	}
	return unix.Openat(memory, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// readNames lists a directory, without one name.
func readNames(dir int, except string) ([]name, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "directory")
	defer file.Close()
	texts, err := file.Readdirnames(-1)
	if len(texts) > maxNames {
		return nil, fmt.Errorf("it has %d names, and only directories of at most %d can be covered", len(texts), maxNames)
	}
	if err != nil {
		return nil, err
	}
	var own unix.Stat_t
	var system unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &own), unix.Fstatfs(fd, &system)); err != nil {
		return nil, err
	}
	var names []name
	for _, text := range texts {
		n := name{text: text, devices: system.Flags&unix.ST_NODEV == 0}
		err := unix.Fstatat(fd, text, &n.stat, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
		if errors.Is(err, unix.ENOENT) || text == except { // removed meanwhile
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		n.mounted = n.stat.Dev != own.Dev
		names = append(names, n)
	}
	return names, nil
}

// newMemory makes a file system in memory that is mounted nowhere yet.
func newMemory(devices bool) (int, error) {
	context, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, err
	}
	attributes := unix.MOUNT_ATTR_NOSUID
	if !devices {
		attributes |= unix.MOUNT_ATTR_NODEV
	}
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attributes)
}

// copyOwner lets those write to a directory who may write to the other one.
func copyOwner(to, from int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(from, &stat); err != nil {
		return err
	}
	if err := unix.Fchownat(to, ".", int(stat.Uid), int(stat.Gid), 0); err != nil {
		return err
	}
	return unix.Fchmodat(to, ".", stat.Mode&^unix.S_IFMT, 0)
}

// show makes a name of the covered directory lead to the same as before.
func (n name) show(memory, covered int) error {
	kind := n.stat.Mode & unix.S_IFMT
	switch {
	case kind == unix.S_IFLNK:
		return n.link(memory, covered)
	case n.isDevice():
		// A mount for each device of /dev would make hundreds. Where none may be made, as in a container without the
		// capability, it is mounted.
		if err := n.makeDevice(memory); !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	tree, err := unix.OpenTree(covered, n.text, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	at, err := makeIn(memory, n.text, kind == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

func (n name) link(memory, covered int) error {
	buffer := make([]byte, unix.PathMax)
	length, err := unix.Readlinkat(covered, n.text, buffer)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(string(buffer[:length]), memory, n.text); err != nil {
		return err
	}
	return unix.Fchownat(memory, n.text, int(n.stat.Uid), int(n.stat.Gid), unix.AT_SYMLINK_NOFOLLOW)
}

// isDevice reports whether the name is a device that can be used, and nothing that is mounted there, such as a terminal.
func (n name) isDevice() bool {
	kind := n.stat.Mode & unix.S_IFMT
	return (kind == unix.S_IFCHR || kind == unix.S_IFBLK) && n.devices && !n.mounted
}

// makeDevice needs a umask of 0. makeDevice runs once for each device of /dev in each container.
func (n name) makeDevice(memory int) error {
	if err := unix.Mknodat(memory, n.text, n.stat.Mode, int(n.stat.Rdev)); err != nil {
		return err
	}
	if n.stat.Uid == 0 && n.stat.Gid == 0 {
		return nil
	}
	return unix.Fchownat(memory, n.text, int(n.stat.Uid), int(n.stat.Gid), unix.AT_SYMLINK_NOFOLLOW)
}
