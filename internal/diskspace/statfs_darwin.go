package diskspace

import "golang.org/x/sys/unix"

func statfs(path string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Space{}, err
	}
	unit := uint64(fs.Bsize) // macOS counts in it
	return Space{Total: fs.Blocks * unit, Free: fs.Bfree * unit, Available: fs.Bavail * unit, Inodes: fs.Files, InodesFree: fs.Ffree, ReadOnly: fs.Flags&unix.MNT_RDONLY != 0}, nil
}
