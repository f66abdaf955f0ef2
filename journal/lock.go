package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lockPoll is how often a lock that another process holds is tried.
const lockPoll = 20 * time.Millisecond

// lock keeps other processes away from the journal. It is a file of its own, since the
// journal's files are replaced while it is held. The kernel drops it with the process.
type lock struct{ file *os.File }

func takeLock(path string, deadline time.Time) (*lock, error) {
	f, writable, err := openLock(path)
	if err != nil {
		return nil, err
	}
	await(deadline, func() bool {
		err = tryLock(f)
		return !errors.Is(err, errLocked)
	})
	if errors.Is(err, errLocked) {
		err = fmt.Errorf("%w%s", ErrInUse, holder(path))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &lock{f}
	if !writable {
		return l, nil
	}
	if err := l.sign(); err != nil && !takesNoWrites(err) {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// openLock opens what is locked. A disk that takes no writes may have no room for the file,
// and then it is the directory.
func openLock(path string) (f *os.File, writable bool, err error) {
	f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil || !takesNoWrites(err) {
		return f, true, err
	}
	f, err = os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.Open(filepath.Dir(path))
	}
	return f, false, err
}

// sign writes the process ID, for the message that the next one gets. It always has the
// same width, so that the file need not be truncated, which some filesystems sync.
func (l *lock) sign() error {
	_, err := l.file.WriteAt(fmt.Appendf(nil, "%-19d\n", os.Getpid()), 0)
	return err
}

// await tries until it succeeds or the deadline has passed, at least once, and reports whether it succeeded.
func await(deadline time.Time, try func() bool) bool {
	for !try() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(lockPoll)
	}
	return true
}

// InUse reports whether a process has the journal at path open.
func InUse(path string) bool { return isLocked(path) }

// isLocked reports whether a process appends to the log. It finds the process also if the
// lock file was deleted and made again.
func isLocked(log string) bool {
	f, err := os.Open(log)
	if err != nil {
		return false // reading it reports why
	}
	defer f.Close()
	return errors.Is(tryLock(f), errLocked)
}

func holder(path string) string {
	pid, err := os.ReadFile(path)
	if err != nil || len(pid) == 0 {
		return ""
	}
	return " (pid " + strings.TrimSpace(string(pid)) + ")"
}

func (l *lock) release() error { return l.file.Close() }
