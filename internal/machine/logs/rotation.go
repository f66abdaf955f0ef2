package logs

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// generation is the file or a rotated predecessor.
type generation struct {
	path   string
	info   os.FileInfo
	number int
}

// generations are the file and its rotated predecessors, the oldest first. A directory that changes
// while it is listed is listed again, so that no renamed file is missing.
func (l *logFile) generations() []generation {
	list := l.list()
	for {
		again := l.list()
		if same(list, again) {
			return again
		}
		list = again
	}
}

func same(a, b []generation) bool {
	return slices.EqualFunc(a, b, func(a, b generation) bool { return a.path == b.path && os.SameFile(a.info, b.info) })
}

func (l *logFile) list() (list []generation) {
	names, _ := filepath.Glob(quoteMeta(l.path) + "*")
	for _, name := range names {
		info, err := os.Stat(name)
		suffix := strings.TrimPrefix(name, l.path)
		if err != nil || !info.Mode().IsRegular() || suffix != "" && !strings.ContainsAny(suffix[:1], ".-") || compressed(suffix) {
			continue
		}
		number, _ := strconv.Atoi(strings.TrimPrefix(suffix, "."))
		list = append(list, generation{name, info, number})
	}
	slices.SortFunc(list, func(a, b generation) int {
		if a.path == l.path || b.path == l.path { // the newest, whatever its time
			return cmp.Compare(bit(a.path == l.path), bit(b.path == l.path))
		}
		return cmp.Or(a.info.ModTime().Compare(b.info.ModTime()), cmp.Compare(b.number, a.number), strings.Compare(a.path, b.path))
	})
	return list
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compressed(suffix string) bool {
	return slices.Contains([]string{".gz", ".xz", ".zst", ".bz2"}, filepath.Ext(suffix))
}

func quoteMeta(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// next opens what comes after a place at which nothing more is to be read, nil if nothing does: as long
// as nothing was written to the next file, the writer may still write to this one.
func (l *logFile) next(file *os.File, at place) (*os.File, place, error) {
	if !is(file, at) { // truncated: it goes on in the copy that was made before, else at the beginning
		if rest := l.find(at); rest != nil {
			at.Inode = 0
			return rest, at, at.identify(rest)
		}
		l.lost += max(0, l.size-at.Offset)
		again, err := os.Open(l.path)
		return again, place{}, err
	}
	later, err := l.later(file)
	if err != nil {
		return nil, place{}, err
	}
	i := slices.IndexFunc(later, func(g generation) bool { return g.info.Size() > 0 })
	if i < 0 {
		return nil, place{}, nil
	}
	next, err := openSame(later[i])
	if next == nil {
		return nil, place{}, err // renamed since: the next look finds it
	}
	var begin place
	if copied(file, next, at) { // it is not truncated yet, or the copy not finished
		begin = place{Head: at.Head, HeadSize: at.HeadSize, Offset: at.Offset}
	}
	err = begin.identify(next)
	// Its beginning is known, and by that it is known if it is truncated. Before that, a copy of it was made.
	if again, err2 := l.later(file); err == nil && err2 == nil && same(later, again) {
		return next, begin, nil
	} else {
		next.Close()
		return nil, place{}, errors.Join(err, err2)
	}
}

// copied reports whether the read part of a file is a copy of the beginning of a later file: both have the same text at
// their beginnings and before the place, and the copy is the younger file, as far as the file system knows.
func copied(file, later *os.File, at place) bool {
	if at.Offset == 0 || !is(later, at) {
		return false
	}
	from := max(0, at.Offset-maxHead)
	one, other := make([]byte, at.Offset-from), make([]byte, at.Offset-from)
	_, err1 := file.ReadAt(one, from)
	_, err2 := later.ReadAt(other, from)
	if err1 != nil || err2 != nil || !bytes.Equal(one, other) {
		return false
	}
	begun, ok1 := born(file)
	original, ok2 := born(later)
	return !ok1 || !ok2 || !original.After(begun)
}

// born is when a file was created, false if the file system does not keep that.
func born(file *os.File) (time.Time, bool) {
	var stat unix.Statx_t
	err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &stat)
	return time.Unix(stat.Btime.Sec, int64(stat.Btime.Nsec)), err == nil && stat.Mask&unix.STATX_BTIME != 0
}

// later returns the generations after a file, the oldest first. Generations that vanish before they are read are lost.
func (l *logFile) later(file *os.File) ([]generation, error) {
	here, err := file.Stat()
	if err != nil {
		return nil, err
	}
	list := l.generations()
	self := slices.IndexFunc(list, func(g generation) bool { return os.SameFile(g.info, here) })
	if self >= 0 {
		list = list[self+1:]
	} else { // the successors of a removed file were modified later
		list = slices.DeleteFunc(list, func(g generation) bool { return g.path != l.path && !g.info.ModTime().After(here.ModTime()) })
	}
	unread := map[uint64]int64{}
	for _, g := range list {
		unread[inode(g.info)] = g.info.Size()
	}
	for number, size := range l.unread {
		if _, ok := unread[number]; !ok && number != inode(here) {
			l.lost += size
		}
	}
	l.unread = unread
	return list, nil
}

// surveyPause is how often the other generations are looked at while one is read.
const surveyPause = 100 * time.Millisecond

// survey updates how much is left to be read, in this file and in later ones.
func (l *logFile) survey(file *os.File, at place) (behind int64, err error) {
	if now := l.now(); now.Sub(l.surveyed) >= surveyPause || now.Before(l.surveyed) {
		l.surveyed = now
		if _, err := l.later(file); err != nil {
			return 0, err
		}
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	l.size = info.Size()
	behind = max(0, l.size-at.Offset)
	for number, size := range l.unread {
		if number != inode(info) { // this one was a later one when they were last looked at
			behind += size
		}
	}
	return behind, nil
}

// openSame opens a file unless another file has its name meanwhile.
func openSame(g generation) (*os.File, error) {
	file, err := os.Open(g.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !os.SameFile(info, g.info) {
		file.Close()
		return nil, err
	}
	return file, nil
}

// find opens the file that contains a place: the file with the place's inode or, since the log may have been copied, the
// oldest file with the same beginning. find returns nil if no file matches.
func (l *logFile) find(at place) *os.File {
	for {
		file, renamed := findIn(l.generations(), at)
		if !renamed {
			return file
		}
	}
}

// findIn reports whether a file was renamed during the search, so that it was not examined.
func findIn(generations []generation, at place) (found *os.File, renamed bool) {
	slices.SortStableFunc(generations, func(a, b generation) int {
		return cmp.Compare(bit(inode(b.info) == at.Inode), bit(inode(a.info) == at.Inode))
	})
	for _, g := range generations {
		file, err := openSame(g)
		switch {
		case err != nil:
		case file == nil:
			return nil, true
		case is(file, at):
			return file, false
		default:
			file.Close()
		}
	}
	return nil, false
}

// inode is the number of a file, 0 if it has none.
func inode(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
