package logfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A rotation renames the files of a log one after the other, the oldest first, so that at any time
// the existing numbers are in order of age. But a reader cannot open all files at one instant. The
// functions below therefore list, act, and list again.

// A log is named by the path of its newest file.

// numbers lists the files of a log that exist, the newest first: 0 is log, 1 is log.1.
func numbers(log string) ([]int, error) {
	base := filepath.Base(log)
	entries, err := os.ReadDir(filepath.Dir(log))
	if err != nil {
		return nil, err
	}
	var found []int
	for _, entry := range entries {
		if entry.Name() == base {
			found = append(found, 0)
		} else if n, err := strconv.Atoi(strings.TrimPrefix(entry.Name(), base+".")); err == nil && n > 0 && entry.Type().IsRegular() {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, cmp.Compare)
	return found, nil
}

// isAt reports whether a file has this number now.
func isAt(log string, n int, file fs.FileInfo) bool {
	info, err := os.Stat(filePath(log, n))
	return err == nil && os.SameFile(info, file)
}

func exists(log string, n int) bool {
	_, err := os.Lstat(filePath(log, n))
	return err == nil
}

// openOldest returns fs.ErrNotExist if there is no log.
func openOldest(log string) (*os.File, error) {
	for {
		found, err := numbers(log)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fs.ErrNotExist
		}
		file, err := openIfOldest(log, found[len(found)-1])
		if file != nil || err != nil {
			return file, err
		}
	}
}

// openIfOldest opens the file that had the highest number, or returns nil if another one has a higher
// number by now: rotations may have given its number to a younger file, even to one in which nothing is
// yet. The highest number never becomes lower, so that a file was the oldest when it was opened if the
// highest number is the same before and after that.
func openIfOldest(log string, highest int) (*os.File, error) {
	file, err := openAt(log, highest)
	if file == nil || err != nil {
		return nil, err
	}
	again, err := numbers(log)
	if err != nil || len(again) == 0 || again[len(again)-1] == highest { // or the log was removed
		return file, nil
	}
	return nil, file.Close()
}

// openAt returns nil for a file that has another name by now.
func openAt(log string, n int) (*os.File, error) {
	file, err := os.Open(filePath(log, n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// successor opens the next newer file after the current one, or returns nil if the current one is
// the newest. If rotations have removed the current file, it opens the oldest existing file; the
// entries in between are lost to this reader.
func successor(log string, current *os.File) (*os.File, error) {
	info, err := current.Stat()
	if err != nil {
		return nil, err
	}
	for {
		if isAt(log, 0, info) {
			return nil, nil
		}
		found, err := numbers(log)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // the directory was removed; a process that has the file open may still write to it
		}
		if err != nil {
			return nil, err
		}
		next, settled, err := after(log, found, info)
		if settled || err != nil {
			return next, err
		}
	}
}

// after looks for the successor among the files that were found. It is not settled if one of
// them was renamed meanwhile.
func after(log string, found []int, current fs.FileInfo) (next *os.File, settled bool, err error) {
	at := slices.IndexFunc(found, func(n int) bool { return isAt(log, n, current) })
	switch {
	case len(found) == 0 || at == 0:
		return nil, true, nil // the newest, though a rotation may have been interrupted
	case at < 0:
		at = len(found)
	}
	next, err = openAt(log, found[at-1])
	if next == nil || err != nil {
		return nil, false, err
	}
	if stillFollows(log, found, at, current, next) {
		return next, true, nil
	}
	return nil, false, next.Close()
}

// stillFollows looks whether nothing is between the two files. The order of the looks matters:
// a file moves to higher numbers only, and not past the current one.
func stillFollows(log string, found []int, at int, current fs.FileInfo, next *os.File) bool {
	info, err := next.Stat()
	if err != nil {
		return false
	}
	if at == len(found) { // the current one is gone
		again, err := numbers(log)
		return err == nil && slices.Equal(found, again) && isAt(log, found[at-1], info) &&
			!slices.ContainsFunc(again, func(n int) bool { return isAt(log, n, current) })
	}
	for n := found[at-1] + 1; n < found[at]; n++ {
		if exists(log, n) {
			return false
		}
	}
	return isAt(log, found[at-1], info) && isAt(log, found[at], current)
}
