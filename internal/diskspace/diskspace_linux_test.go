package diskspace

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSpace_CountsInFragments(t *testing.T) {
	fs := unix.Statfs_t{Bsize: 1 << 20, Frsize: 4096, Blocks: 100, Bfree: 50, Bavail: 40, Files: 10, Ffree: 5, Flags: unix.ST_RDONLY}
	want := Space{Total: 409600, Free: 204800, Available: 163840, Inodes: 10, InodesFree: 5, ReadOnly: true}
	if got := of(&fs); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	fs.Bsize, fs.Frsize = 4096, 0
	if got := of(&fs); got != want {
		t.Errorf("without fragments: got %+v, want %+v", got, want)
	}
}

func TestOf(t *testing.T) {
	if s, err := Of(t.TempDir()); err != nil || s.Total == 0 || s.Available > s.Free || s.Free > s.Total {
		t.Errorf("got %+v (%v)", s, err)
	}
	if _, err := Of("/nowhere"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
