package agent

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime"
)

// notReady is why this node cannot take pods, nil if it can. A lost API server is no reason: the
// node controller notices that by itself, by the lease.
func (a *Agent) notReady() error {
	if err := a.shutdown.Err(); err != nil {
		return err
	}
	if gate, ok := a.runtime.(runtime.Gate); ok {
		if err := gate.NotReady(); err != nil {
			return err
		}
	}
	return writableState(a.config.StateDir)
}

// writableState finds a state directory that is gone or on a file system that went read-only, as
// failing disks do: no container could be started then.
func writableState(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("state directory %s: %w", dir, err)
	}
	return writable(dir, fs.Flags)
}

// writable looks at the flags of the file system of a directory.
func writable(dir string, flags int64) error {
	if flags&unix.ST_RDONLY != 0 {
		return fmt.Errorf("state directory %s is on a read-only file system", dir)
	}
	return nil
}
