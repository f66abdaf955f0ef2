package monitor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// logFile reads a file that grows and is rotated, by renaming it or by copying and truncating it. Its
// position is the beginning of the file, which identifies it, and how far it was read.
type logFile struct {
	path   string
	origin Origin

	needles  [][]byte
	complete bool
	throttle throttle
	now      func() time.Time
	poll     time.Duration
	sleep    func(context.Context, time.Duration) bool
}

func (l *logFile) name() string { return l.path }

// place is a position. Head is a checksum of the first HeadSize bytes of the file.
type place struct {
	Head     uint64 `json:"head"`
	HeadSize int    `json:"headSize"`
	Offset   int64  `json:"offset"`
}

func (p place) String() string {
	text, _ := json.Marshal(p) // numbers alone
	return string(text)
}

// maxHead is how many bytes tell a file from others.
const maxHead = 1024

func (l *logFile) read(ctx context.Context, position string, take func(batch)) error {
	file, at, err := l.begin(position)
	for errors.Is(err, os.ErrNotExist) { // not written yet
		if !l.sleep(ctx, l.poll) {
			return nil
		}
		file, at, err = l.begin(position)
	}
	if err != nil {
		return err
	}
	defer func() { file.Close() }()
	if position == "" { // from here on no line is lost, whatever happens before the first one comes
		take(batch{position: at.String()})
	}
	for {
		at, err = l.readToEnd(ctx, file, at, take)
		if err != nil || ctx.Err() != nil {
			return err
		}
		next, begin, err := l.next(file, at)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if next != nil {
			if begin == (place{}) { // what was written between the last read and the rotation
				if _, err = l.readToEnd(ctx, file, at, take); err != nil || ctx.Err() != nil {
					next.Close()
					return err
				}
			}
			file.Close()
			file, at = next, begin
			continue
		}
		if !l.sleep(ctx, l.poll) {
			return nil
		}
	}
}

// begin opens the file in which the position is. Without a position, or if that file is gone, it is
// the end, or the beginning, of the newest one.
func (l *logFile) begin(position string) (*os.File, place, error) {
	if position == "" {
		file, err := os.Open(l.path)
		if err != nil {
			return nil, place{}, err
		}
		at, err := endOf(file)
		return file, at, err
	}
	var at place
	if json.Unmarshal([]byte(position), &at) == nil {
		if file := l.find(at); file != nil {
			return file, at, nil
		}
	}
	file, err := os.Open(l.path)
	return file, place{}, err
}

// endOf is the place after the last whole line of a file.
func endOf(file *os.File) (place, error) {
	info, err := file.Stat()
	if err != nil {
		return place{}, err
	}
	tail := make([]byte, min(info.Size(), maxLine))
	from := info.Size() - int64(len(tail))
	if _, err := file.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return place{}, err
	}
	at := place{Offset: from + int64(bytes.LastIndexByte(tail, '\n')+1)}
	return at, at.identify(file)
}

// generation is the file or what it was rotated to.
type generation struct {
	path   string
	info   os.FileInfo
	number int
}

// generations are the file and what it was rotated to, the oldest first. A directory that changes while
// it is listed is listed again, so that no file is missing because it was renamed meanwhile.
func (l *logFile) generations() []generation {
	list := l.list()
	for {
		again := l.list()
		if slices.EqualFunc(list, again, func(a, b generation) bool { return a.path == b.path && os.SameFile(a.info, b.info) }) {
			return again
		}
		list = again
	}
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

// is reports whether a place is in a file.
func is(file *os.File, at place) bool {
	info, err := file.Stat()
	if err != nil || info.Size() < at.Offset || info.Size() < int64(at.HeadSize) {
		return false
	}
	if at.HeadSize == 0 {
		return true
	}
	sum, err := headSum(file, at.HeadSize)
	return err == nil && sum == at.Head
}

// identify remembers the beginning of the file, of which more is known the more there was read.
func (p *place) identify(file *os.File) error {
	size := int(min(p.Offset, maxHead))
	if size == p.HeadSize {
		return nil
	}
	sum, err := headSum(file, size)
	if err == nil {
		p.Head, p.HeadSize = sum, size
	}
	return err
}

func headSum(file *os.File, size int) (uint64, error) {
	head := make([]byte, size)
	if _, err := file.ReadAt(head, 0); err != nil {
		return 0, err
	}
	h := fnv.New64a()
	h.Write(head)
	return h.Sum64(), nil
}

// readToEnd reads all whole lines that there are.
func (l *logFile) readToEnd(ctx context.Context, file *os.File, at place, take func(batch)) (place, error) {
	buffer := make([]byte, chunkSize)
	skipping := false // within a line of more than a chunk, of which the beginning was read
	for ctx.Err() == nil {
		began := l.now()
		n, err := file.ReadAt(buffer, at.Offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return at, err
		}
		chunk := buffer[:n]
		if end := bytes.LastIndexByte(chunk, '\n'); end >= 0 {
			chunk = chunk[:end+1]
		} else if n < len(buffer) {
			return at, nil // no whole line yet
		}
		b := l.batchOf(chunk, at, skipping)
		skipping = chunk[len(chunk)-1] != '\n'
		at.Offset += int64(len(chunk))
		if err := at.identify(file); err != nil {
			return at, err
		}
		b.position = at.String()
		if info, err := file.Stat(); err == nil {
			b.behind = max(0, info.Size()-at.Offset)
		}
		take(b)
		if !l.throttle.worked(ctx, l.now().Sub(began)) {
			return at, nil
		}
	}
	return at, nil
}

func (l *logFile) batchOf(chunk []byte, at place, skipping bool) batch {
	b := batch{count: bytes.Count(chunk, []byte("\n"))}
	rest := chunk
	if skipping { // the end of a line that was too long
		end := bytes.IndexByte(chunk, '\n')
		if end < 0 {
			return b
		}
		rest = chunk[end+1:]
	}
	id := func(text []byte) string {
		return strconv.FormatUint(at.Head, 36) + " " + strconv.FormatInt(at.Offset+int64(cap(chunk)-cap(text)), 10)
	}
	candidates(rest, l.needles, l.complete, func(text []byte) {
		b.lines = append(b.lines, line{origin: l.origin, at: l.now(), text: bounded(string(text)), id: id(text)})
	})
	return b
}

// next opens what comes after a place at which nothing more is to be read, nil if nothing does: as long
// as nothing was written to the next file, the writer may still write to this one.
func (l *logFile) next(file *os.File, at place) (*os.File, place, error) {
	if !is(file, at) { // truncated: it goes on in the copy that was made before, else at the beginning
		if rest := l.find(at); rest != nil {
			return rest, at, nil
		}
		again, err := os.Open(l.path)
		return again, place{}, err
	}
	here, err := file.Stat()
	if err != nil {
		return nil, place{}, err
	}
	generations := l.generations()
	self := slices.IndexFunc(generations, func(g generation) bool { return os.SameFile(g.info, here) })
	for i, g := range generations {
		// A file that was removed is followed by those that were written later.
		later := i > self && (self >= 0 || g.path == l.path || g.info.ModTime().After(here.ModTime()))
		if !later || g.info.Size() == 0 {
			continue
		}
		next, err := openSame(g)
		if next == nil && err == nil {
			break // renamed since: the next look finds it
		}
		return next, place{}, err
	}
	return nil, place{}, nil
}

// openSame opens a file unless its name is meanwhile that of another one.
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

// find opens the file in which a place is, the oldest of them, nil if there is none.
func (l *logFile) find(at place) *os.File {
	for {
		file, renamed := l.findIn(l.generations(), at)
		if !renamed {
			return file
		}
	}
}

// findIn reports whether a file was renamed meanwhile, so that it was not looked at.
func (l *logFile) findIn(generations []generation, at place) (found *os.File, renamed bool) {
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
