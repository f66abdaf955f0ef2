package process

import (
	"testing"
	"testing/synctest"
	"time"
)

// A statusd that was killed while it started a process leaves its locks to that process for a
// moment. The next one waits for them, and not for those that stay.
func TestLockWaitsForAPredecessor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		predecessor, err := lockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if lock, err := lockDir(dir); err == nil {
			t.Error("a directory is locked twice", lock.release())
		}
		time.AfterFunc(lockPatience/2, func() { _ = predecessor.release() })
		lock, err := lockDir(dir)
		if err != nil {
			t.Fatalf("got %v, want the lock once the predecessor is gone", err)
		}
		if err := lock.release(); err != nil {
			t.Error(err)
		}
	})
}
