package podvolume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MakeSubPath makes the directory of a sub-path if it is missing, with the mode of the volume:
// users who may write to one may write to the other. MakeSubPath never leaves the volume, whatever links a
// container has put into it.
func MakeSubPath(volume, subPath string) error {
	root, err := os.OpenRoot(volume)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Stat(subPath); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	path := ""
	for _, element := range strings.Split(filepath.Clean(subPath), "/") {
		path = filepath.Join(path, element)
		err := root.Mkdir(path, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := openUp(root, path, info.Mode()); err != nil {
			return err
		}
	}
	return nil
}

// openUp gives a new directory a mode that the umask has no say in.
func openUp(root *os.Root, path string, mode fs.FileMode) error {
	dir, err := root.OpenRoot(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Chmod(".", mode&(fs.ModePerm|fs.ModeSetgid|fs.ModeSticky))
}
