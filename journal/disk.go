package journal

import (
	"io"
	"os"
)

// disk is what the journal needs of a filesystem. Tests put a disk under it that forgets
// what was not synced, or that fails.
type disk interface {
	readFile(path string) ([]byte, error)
	// create makes or empties the file.
	create(path string) (file, error)
	// link gives the file a second name.
	link(path, name string) error
	rename(from, to string) error
	remove(path string) error
	// syncDir makes the names in the directory durable.
	syncDir(dir string) error
}

type file interface {
	io.Writer
	io.WriterAt
	Sync() error
	Close() error
}

type osDisk struct{}

func (osDisk) readFile(path string) ([]byte, error) { return os.ReadFile(path) }

// create also locks the file, for isLocked.
func (osDisk) create(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		_ = tryLock(f) // a filesystem without locks has refused the journal's lock before
	}
	return f, err
}

func (osDisk) link(path, name string) error { return os.Link(path, name) }

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) remove(path string) error { return os.Remove(path) }

func (osDisk) syncDir(dir string) error { return syncDir(dir) }
