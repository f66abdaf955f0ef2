package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// dirLock makes sure that no other runtime uses a directory. It ends with the process,
// however that ends.
type dirLock struct{ files []*os.File }

// lockDir locks a file in the directory, and the directory itself: a disk that takes no
// writes may have no room for the file, and must not keep statusd from starting.
func lockDir(dir string) (*dirLock, error) {
	l := &dirLock{}
	for _, open := range []func() (*os.File, error){
		func() (*os.File, error) { return openLock(filepath.Join(dir, "lock")) },
		func() (*os.File, error) { return os.Open(dir) },
	} {
		file, err := open()
		if err == nil && file != nil {
			l.files = append(l.files, file)
			err = flockPatiently(int(file.Fd()))
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%s is in use by another process; stop the other statusd, or give this one a directory of its own", dir)
		}
		if err != nil {
			return nil, errors.Join(err, l.release())
		}
	}
	return l, nil
}

// A process that statusd is starting when statusd is killed inherits the locks until it executes its
// program. The time is short, but the next statusd may start within it.
const (
	lockPatience = 2 * time.Second
	lockPoll     = 20 * time.Millisecond
)

func flockPatiently(fd int) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(lockPoll)
	}
}

// openLock returns nil if there is no file and none can be made.
func openLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if !takesNoWrites(err) {
		return file, err
	}
	file, err = os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// takesNoWrites reports whether an error comes from a full or read-only disk.
func takesNoWrites(err error) bool {
	return errors.Is(err, unix.EROFS) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func (l *dirLock) release() error {
	var errs []error
	for _, file := range l.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
