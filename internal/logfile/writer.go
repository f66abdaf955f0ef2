package logfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxPiece is how long an entry may be; longer lines become several.
const maxPiece = 16 * 1024

// tailBytes and tailLines bound what Tail returns, as the API does for a termination
// message that is taken from the log.
const (
	tailBytes = 2048
	tailLines = 80
)

// retries is how often a rotation that fails is tried while as many bytes come as a file
// should have.
const retries = 16

// timeFormat keeps all nine digits, so that entries sort as text.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// Writer writes the log of one container. Its methods may be called from any goroutine.
type Writer struct {
	dir      string
	maxBytes int64
	maxFiles int

	mu   sync.Mutex // guards all below
	file *os.File
	size int64
	tail []byte // the end of what was written, cut before it is twice too long
	err  error  // the last one that lost an entry

	untilRetry int64 // bytes to come before a rotation that failed is tried again
	broken     bool  // the file ends within an entry
}

// NewWriter continues the log in a directory. A file that would grow beyond maxBytes is
// rotated, and no more than maxFiles are kept.
func NewWriter(dir string, maxBytes int64, maxFiles int) (*Writer, error) {
	w := &Writer{dir: dir, maxBytes: maxBytes, maxFiles: max(1, maxFiles)}
	return w, w.open()
}

// open needs mu, unless w is known to no other goroutine.
func (w *Writer) open() error {
	file, err := os.OpenFile(w.path(0), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	w.file, w.size = file, info.Size()
	return nil
}

func (w *Writer) path(i int) string { return filePath(Newest(w.dir), i) }

// Newest is the path of the newest file of the log in a directory.
func Newest(dir string) string { return filepath.Join(dir, "log") }

// filePath is the path of a file of a log: its newest one, or an older one by number.
func filePath(log string, i int) string {
	if i == 0 {
		return log
	}
	return fmt.Sprintf("%s.%d", log, i)
}

// Copy logs a stream of the container until the stream ends. An entry that cannot be written is
// lost, so that the container does not block: see Close.
func (w *Writer) Copy(stream string, from io.Reader) {
	lines := bufio.NewReaderSize(from, maxPiece)
	for {
		piece, err := lines.ReadSlice('\n')
		if len(piece) > 0 {
			w.write(stream, piece, errors.Is(err, bufio.ErrBufferFull))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (w *Writer) write(stream string, piece []byte, goesOn bool) {
	tag := "F"
	if goesOn {
		tag = "P"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remember(piece)
	entry := fmt.Appendf(nil, "%s %s %s ", time.Now().UTC().Format(timeFormat), stream, tag)
	entry = append(entry, piece...)
	if entry[len(entry)-1] != '\n' {
		entry = append(entry, '\n')
	}
	if w.broken {
		entry = append([]byte("\n"), entry...) // or half an entry would swallow this one
	}
	if !w.makeRoom(int64(len(entry))) {
		return
	}
	n, err := w.file.Write(entry)
	w.size += int64(n)
	w.broken = err != nil && (n > 0 || w.broken)
	if err != nil {
		w.err = err
	}
}

// makeRoom needs mu. It rotates if the file would grow too long. If that fails it is tried
// again after some more bytes, not for each entry; meanwhile the file grows to twice its
// size, and then entries are lost. makeRoom reports whether there is room.
func (w *Writer) makeRoom(length int64) bool {
	if w.size == 0 || w.size+length <= w.maxBytes {
		return true
	}
	if w.untilRetry -= length; w.untilRetry <= 0 {
		err := w.rotate()
		if err == nil {
			w.untilRetry, w.broken = 0, false
			return true
		}
		w.err, w.untilRetry = err, w.maxBytes/retries
	}
	return w.size+length <= 2*w.maxBytes
}

// rotate needs mu. The new file is made first: if that is not possible, no name changes,
// the current file grows on, and no older one is lost.
func (w *Writer) rotate() error {
	next, err := os.OpenFile(w.path(0)+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := w.shift(next.Name()); err != nil {
		os.Remove(next.Name()) // the next try truncates what stays
		return errors.Join(err, next.Close())
	}
	old := w.file
	w.file, w.size = next, 0
	return old.Close()
}

// shift gives each file the next name and the new one the first. Where it was interrupted
// it goes on when it is called again.
func (w *Writer) shift(next string) error {
	if _, err := os.Lstat(w.path(0)); err == nil {
		for i := w.maxFiles - 1; i > 0; i-- {
			if err := os.Rename(w.path(i-1), w.path(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return os.Rename(next, w.path(0))
}

// remember needs mu.
func (w *Writer) remember(piece []byte) {
	w.tail = append(w.tail, piece...)
	if len(w.tail) > 2*tailBytes {
		// One rune more than needed: the cut may leave half of one at the beginning.
		w.tail = append(w.tail[:0], w.tail[len(w.tail)-tailBytes-utf8.UTFMax:]...)
	}
}

// Tail returns the last lines that were written, as a termination message needs them.
func (w *Writer) Tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	tail := LastBytes(string(w.tail), tailBytes)
	lines := strings.SplitAfter(tail, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines[max(0, len(lines)-tailLines):], "")
}

// Close closes the log and returns the last error that lost an entry, if any.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.err, w.file.Close())
}

// LastBytes cuts text to its end of at most n bytes, between two runes. Invalid UTF-8 is replaced
// first: the API would reject or change it.
func LastBytes(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	cut := max(0, len(text)-n)
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return text[cut:]
}

// Rotate renames the files of a log that another process writes, and removes files beyond maxFiles. The writer must then open the
// newest file again, which it creates.
func Rotate(log string, maxFiles int) error {
	for i := max(1, maxFiles-1); i > 0; i-- {
		if err := os.Rename(filePath(log, i-1), filePath(log, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Tail returns the last lines of a log, as a termination message needs them.
func Tail(log string) (string, error) {
	file, err := OpenFile(log, Options{Tail: new(int64(tailLines))})
	if err != nil {
		return "", err
	}
	defer file.Close()
	var tail []byte
	block := make([]byte, 4*tailBytes)
	for {
		n, err := file.Read(block)
		tail = append(tail, block[:n]...)
		if len(tail) > 2*tailBytes {
			tail = append(tail[:0], tail[len(tail)-tailBytes-utf8.UTFMax:]...)
		}
		if errors.Is(err, io.EOF) {
			return LastBytes(string(tail), tailBytes), nil
		}
		if err != nil {
			return "", err
		}
	}
}
