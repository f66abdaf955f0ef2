package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// openError returns an error of one line: what made Open fail, and what to do.
func openError(path string, err error) error {
	advice, sentinel := diagnose(path, err)
	switch {
	case sentinel == nil:
		return fmt.Errorf("journal: open %s: %w", path, err)
	case errors.Is(err, sentinel):
		return fmt.Errorf("journal: open %s: %w; %s", path, err, advice)
	default:
		return fmt.Errorf("journal: open %s: %w: %w; %s", path, sentinel, err, advice)
	}
}

// writeError returns the error of a write that was not acknowledged, with its cause.
func writeError(path string, err error) error {
	advice, sentinel := diagnose(path, err)
	if sentinel == nil {
		return fmt.Errorf("journal: %w: %s: %w", ErrWrite, path, err)
	}
	return fmt.Errorf("journal: %w: %s: %w: %w; %s", ErrWrite, path, sentinel, err, advice)
}

// diagnose finds the sentinel for an error and the advice that goes with it.
func diagnose(path string, err error) (advice string, sentinel error) {
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, ErrNewerFormat):
		return "run the statusd that wrote it or a newer one, or move " + path + "* away to start empty", ErrNewerFormat
	case errors.Is(err, ErrOldFormat):
		return "run the statusd that wrote it until its pods have ended, or move " + path + "* away to start empty", ErrOldFormat
	case errors.Is(err, ErrOtherNode):
		return "correct the node name, or move " + path + "* away to start empty", ErrOtherNode
	case errors.Is(err, ErrInUse):
		return "stop the other process, or give this one another journal", ErrInUse
	case errors.Is(err, ErrDamaged):
		return "move " + path + "* away to start empty, and report the message", ErrDamaged
	case outOfSpace(err):
		return "free space, raise the quota or file size limit of " + dir + ", then try again", ErrNoSpace
	case errors.Is(err, syscall.EROFS):
		return "mount the filesystem of " + dir + " writable, or put the journal elsewhere", ErrReadOnly
	case errors.Is(err, fs.ErrPermission):
		if file, ok := existing(err); ok {
			return fmt.Sprintf("make %s readable and writable for uid %d", file, os.Geteuid()), ErrPermission
		}
		return fmt.Sprintf("make the directory %s writable for uid %d, or put the journal elsewhere", dir, os.Geteuid()), ErrReadOnly
	case errors.Is(err, fs.ErrNotExist):
		return "create the directory " + dir + ", or correct the path", fs.ErrNotExist
	}
	return "", nil
}

func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// existing returns the file that a permission is missing for, if the error is about a file
// that is there; if it is not, the directory does not let it be made.
func existing(err error) (string, bool) {
	pathErr, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return "", false
	}
	_, statErr := os.Lstat(pathErr.Path)
	return pathErr.Path, statErr == nil
}
