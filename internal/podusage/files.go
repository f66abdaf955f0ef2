package podusage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Size is the size of a directory on disk.
type Size struct{ Bytes, Inodes uint64 }

// Measure adds up the files in a directory on its file system. Files with several names count once,
// and files deleted meanwhile do not count.
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

// ignoreGone ignores errors of files deleted during the measurement, and of directories without
// read access: unreadable files count as nothing.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}
