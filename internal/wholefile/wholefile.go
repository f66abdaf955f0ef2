// Package wholefile replaces files as a whole: a crash, a kill or a full disk leaves the old content or the new one.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces the content of a file, which only its owner may read, and returns when it is on disk. A kill may leave an
// unfinished file with the same name plus a dot and a number.
func Write(path string, content []byte) error {
	if err := replace(path, content, (*os.File).Sync); err != nil {
		return err
	}
	directory, err := os.Open(filepath.Dir(path)) // which has the name
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// Replace is Write without a wait for the disk, for files that are written often and may be lost in a
// power failure.
func Replace(path string, content []byte) error {
	return replace(path, content, func(*os.File) error { return nil })
}

func replace(path string, content []byte, sync func(*os.File) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, sync(file), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
