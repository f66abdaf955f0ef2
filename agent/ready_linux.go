package agent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// writableState returns an error if the state directory is gone or on a file system that became
// read-only, as failing disks do: no container could be started then.
func writableState(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("state directory %s: %w", dir, err)
	}
	return writable(dir, fs.Flags)
}

// writable checks the flags of the file system of a directory.
func writable(dir string, flags int64) error {
	if flags&unix.ST_RDONLY != 0 {
		return fmt.Errorf("state directory %s is on a read-only file system", dir)
	}
	return nil
}
