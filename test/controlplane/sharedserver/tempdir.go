package sharedserver

import (
	"os"

	"github.com/statusd/statusd/internal/diskspace"
)

const (
	memoryDir = "/dev/shm"
	// memoryNeeded is several times what the data of a control plane takes in a test.
	memoryNeeded = 2 << 30
)

// TempDir makes a data directory for a control plane that ends with a test: in memory if there is room, since etcd syncs each write,
// and answers nothing for seconds while other programs keep the disk busy. TMPDIR, if set, says where instead.
func TempDir(pattern string) (string, error) {
	if space, err := diskspace.Of(memoryDir); err == nil && space.Available >= memoryNeeded && os.Getenv("TMPDIR") == "" {
		if dir, err := os.MkdirTemp(memoryDir, pattern); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", pattern)
}
