//go:build real

package mounts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel's list of mounts may lack some while others change. What is mounted is left alone all the same, also where several things are mounted
// on each other.
func TestRemoveAt_MountsThatNoListHas(t *testing.T) {
	outside, parent := t.TempDir(), t.TempDir()
	fill(t, outside)
	dir := filepath.Join(parent, "dir")
	at, file := filepath.Join(dir, "deep", "mounted"), filepath.Join(dir, "deep", "file")
	if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := UnmountBelow(parent); err != nil {
			t.Error(err)
		}
	})
	inside := filepath.Join(outside, "a", "b", "c", "file")
	for _, mount := range [][2]string{{outside, at}, {outside, at}, {inside, file}} {
		if err := unix.Mount(mount[0], mount[1], "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Open(parent, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := removeAt(fd, "dir", dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want no directory", err)
	}
	if content, err := os.ReadFile(inside); err != nil || string(content) != "x" {
		t.Errorf("what was mounted: got %q, %v; want it untouched", content, err)
	}
	if left, err := Below(parent); err != nil || len(left) > 0 {
		t.Errorf("got mounts %v, %v; want none", left, err)
	}
}
