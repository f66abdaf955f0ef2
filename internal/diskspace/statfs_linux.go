package diskspace

import "golang.org/x/sys/unix"

func statfs(path string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Space{}, err
	}
	return of(&fs), nil
}

// of counts in fragments: the block size of some file systems, as of FUSE and of networks, is that of a good transfer.
func of(fs *unix.Statfs_t) Space {
	unit := uint64(fs.Frsize)
	if unit == 0 {
		unit = uint64(fs.Bsize)
	}
	return Space{Total: fs.Blocks * unit, Free: fs.Bfree * unit, Available: fs.Bavail * unit, Inodes: fs.Files, InodesFree: fs.Ffree, ReadOnly: fs.Flags&unix.ST_RDONLY != 0}
}
