package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"strconv"
	"time"
)

// logFile reads a file that grows and is rotated, by renaming it or by copying and truncating it. Its
// position is the beginning of the file, which identifies it, and how far it was read.
type logFile struct {
	path   string
	origin Origin

	filter   *prefilter
	throttle throttle
	now      func() time.Time
	poll     time.Duration
	sleep    func(context.Context, time.Duration) bool

	// size is the file's size at the last look, unread the sizes of later files by inode, and lost the bytes that
	// disappeared unread since the last batch.
	size, lost int64
	unread     map[uint64]int64
	surveyed   time.Time
	gone       bool // the place was not found: how much is lost is not known
}

func (l *logFile) name() string { return l.path }

// place is a position. Head is a checksum of the first HeadSize bytes of the file; the inode distinguishes files
// with the same beginning.
type place struct {
	Head     uint64 `json:"head"`
	HeadSize int    `json:"headSize"`
	Offset   int64  `json:"offset"`
	Inode    uint64 `json:"inode,omitempty"`
}

func (p place) String() string {
	text, _ := json.Marshal(p) // numbers alone
	return string(text)
}

// maxHead is how many bytes distinguish files.
const maxHead = 1024

func (l *logFile) read(ctx context.Context, position string, take func(batch)) error {
	l.throttle.begin()
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
			if begin.Offset == 0 && is(file, at) { // what was written between the last read and the rotation
				if err = l.finish(ctx, file, at, take); err != nil || ctx.Err() != nil {
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
	l.gone = err == nil
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

// identify records a checksum of the beginning of the file, and extends it as the file grows. A file whose beginning has
// changed was truncated; its checksum is not recorded.
func (p *place) identify(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	size := int(min(info.Size(), maxHead))
	if size <= p.HeadSize && p.Inode != 0 {
		return nil
	}
	head := make([]byte, max(size, p.HeadSize))
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n < len(head) || p.HeadSize > 0 && checksum(head[:p.HeadSize]) != p.Head {
		return nil
	}
	p.Head, p.HeadSize, p.Inode = checksum(head), len(head), inode(info)
	return nil
}

func headSum(file *os.File, size int) (uint64, error) {
	head := make([]byte, size)
	if _, err := file.ReadAt(head, 0); err != nil {
		return 0, err
	}
	return checksum(head), nil
}

func checksum(data []byte) uint64 {
	h := fnv.New64a()
	h.Write(data)
	return h.Sum64()
}

// readToEnd reads all whole lines that there are.
func (l *logFile) readToEnd(ctx context.Context, file *os.File, at place, take func(batch)) (place, error) {
	buffer := make([]byte, chunkSize)
	for ctx.Err() == nil {
		n, err := file.ReadAt(buffer, at.Offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return at, err
		}
		if !is(file, at) {
			return at, nil // truncated meanwhile: what was read may be of another text
		}
		chunk := buffer[:n]
		if end := bytes.LastIndexByte(chunk, '\n'); end >= 0 {
			chunk = chunk[:end+1]
		} else if n < len(buffer) {
			return at, nil // no whole line yet
		}
		if at, err = l.give(file, at, chunk, take); err != nil {
			return at, err
		}
		if !l.throttle.worked(ctx) {
			return at, nil
		}
	}
	return at, nil
}

// finish reads a file to its end, also a last line that has none, since nothing more is written to it.
func (l *logFile) finish(ctx context.Context, file *os.File, at place, take func(batch)) error {
	at, err := l.readToEnd(ctx, file, at, take)
	if err != nil || ctx.Err() != nil {
		return err
	}
	rest := make([]byte, chunkSize)
	n, err := file.ReadAt(rest, at.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n > 0 && is(file, at) {
		_, err = l.give(file, at, rest[:n], take)
		return err
	}
	return nil
}

// give gives a chunk of lines that begins at a place, and returns the place after it.
func (l *logFile) give(file *os.File, at place, chunk []byte, take func(batch)) (place, error) {
	inside, err := l.insideLine(file, at)
	if err != nil {
		return at, err
	}
	b := l.batchOf(chunk, at, inside)
	at.Offset += int64(len(chunk))
	if err := at.identify(file); err != nil {
		return at, err
	}
	b.position = at.String()
	if b.behind, err = l.survey(file, at); err != nil {
		return at, err
	}
	b.origin, b.lostBytes, b.gone = l.origin, l.lost, l.gone
	l.lost, l.gone = 0, false
	take(b)
	return at, nil
}

// insideLine reports whether a place is within a line longer than a chunk, whose beginning was read. A writer that keeps
// its offset after its file was truncated leaves a hole of zeros; the hole is not part of a line.
func (l *logFile) insideLine(file *os.File, at place) (bool, error) {
	if at.Offset == 0 {
		return false, nil
	}
	var before [1]byte
	if _, err := file.ReadAt(before[:], at.Offset-1); err != nil {
		return false, err
	}
	return before[0] != '\n' && before[0] != 0, nil
}

func (l *logFile) batchOf(chunk []byte, at place, inside bool) batch {
	b := batch{count: bytes.Count(chunk, []byte("\n"))}
	rest := chunk
	if inside { // the end of a line that was too long
		end := bytes.IndexByte(chunk, '\n')
		if end < 0 {
			return b
		}
		rest = chunk[end+1:]
	}
	id := func(text []byte) string { // the same in a copy of the log
		return strconv.FormatUint(checksum(text), 36) + " " + strconv.FormatInt(at.Offset+int64(cap(chunk)-cap(text)), 10)
	}
	l.filter.lines(bytes.TrimLeft(rest, "\x00"), func(text []byte) {
		b.lines = append(b.lines, line{origin: l.origin, at: l.now(), text: bounded(string(text)), id: id(text)})
	})
	return b
}
