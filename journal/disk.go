package journal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// disk is what the journal needs of a filesystem besides what bbolt does by itself. Tests
// put a disk under it that forgets what was not synced.
type disk interface {
	readFile(path string) ([]byte, error)
	// create makes or empties the file; open is for syncing an existing one.
	create(path string) (file, error)
	open(path string) (file, error)
	rename(from, to string) error
	remove(path string) error
	// syncDir makes the names in the directory last.
	syncDir(dir string) error
}

type file interface {
	io.Writer
	Sync() error
	Close() error
}

type osDisk struct{}

func (osDisk) readFile(path string) ([]byte, error) { return os.ReadFile(path) }

func (osDisk) create(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}

func (osDisk) open(path string) (file, error) { return os.OpenFile(path, os.O_RDWR, 0) }

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) remove(path string) error { return os.Remove(path) }

func (osDisk) syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// install gives a finished temporary file its name so that, whenever the power fails, the
// name leads to the old content or to the new one: content first, then the name, then the
// directory that holds the name.
func install(d disk, temporary, path string) error {
	f, err := d.open(temporary)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := d.rename(temporary, path); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// replaceFile writes data to path, through a temporary file.
func replaceFile(d disk, path string, data []byte) error {
	temporary := path + temporarySuffix
	f, err := d.create(temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = install(d, temporary, path)
	}
	if err != nil {
		_ = d.remove(temporary) // the next try overwrites it if this fails as well
	}
	return err
}
