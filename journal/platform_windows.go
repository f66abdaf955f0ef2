package journal

import (
	"os"

	"golang.org/x/sys/windows"
)

// errLocked: another process holds the lock.
const errLocked = windows.ERROR_LOCK_VIOLATION

// lockedByte lies far behind the content: a lock of Windows also refuses reads of the bytes that it covers.
const lockedByte = 0x7fffffff

func tryLock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: lockedByte})
}

// syncDir does nothing: Windows has no call that makes the names in a directory durable.
func syncDir(string) error { return nil }
