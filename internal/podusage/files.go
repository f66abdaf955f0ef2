package podusage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Size is what a directory takes on disk.
type Size struct{ Bytes, Inodes uint64 }

// Measure adds up what is in a directory and not on another file system. Files with several
// names count once, and what is deleted meanwhile does not count.
func Measure(ctx context.Context, dir string) (Size, error) {
	var total Size
	var device uint64
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreGone(err)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if device == 0 {
			device = stat.Dev
		}
		if stat.Dev != device {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if stat.Nlink > 1 && !entry.IsDir() {
			if seen[stat.Ino] {
				return nil
			}
			seen[stat.Ino] = true
		}
		total.Bytes += uint64(stat.Blocks) * 512
		total.Inodes++
		return nil
	})
	return total, err
}

// ignoreGone forgives what is deleted while it is measured, and directories that are closed
// to us: what cannot be read counts as nothing.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}
