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
}

// NewWriter continues the log in a directory. A file that would grow beyond maxBytes is
// rotated, and no more than maxFiles are kept.
func NewWriter(dir string, maxBytes int64, maxFiles int) (*Writer, error) {
	w := &Writer{dir: dir, maxBytes: maxBytes, maxFiles: max(1, maxFiles)}
	return w, w.open()
}

// open needs mu, or nobody else who knows w.
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

func (w *Writer) path(i int) string { return filePath(w.dir, i) }

func filePath(dir string, i int) string {
	if i == 0 {
		return filepath.Join(dir, "log")
	}
	return filepath.Join(dir, fmt.Sprintf("log.%d", i))
}

// Copy logs what it reads from a stream of the container until it ends. An entry that
// cannot be written is lost rather than that the container waits for it: see Close.
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
	if w.size > 0 && w.size+int64(len(entry)) > w.maxBytes {
		if err := w.rotate(); err != nil {
			w.err = err
		}
	}
	n, err := w.file.Write(entry)
	w.size += int64(n)
	if err != nil {
		w.err = err
	}
}

// rotate needs mu. When it fails the current file simply grows on.
func (w *Writer) rotate() error {
	for i := w.maxFiles - 1; i > 0; i-- {
		if err := os.Rename(w.path(i-1), w.path(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if w.maxFiles == 1 {
		if err := os.Remove(w.path(0)); err != nil {
			return err
		}
	}
	old := w.file
	if err := w.open(); err != nil {
		return err
	}
	return old.Close()
}

// remember needs mu.
func (w *Writer) remember(piece []byte) {
	w.tail = append(w.tail, piece...)
	if len(w.tail) > 2*tailBytes {
		// One rune more than needed: the cut may leave half of one at the beginning.
		w.tail = append(w.tail[:0], w.tail[len(w.tail)-tailBytes-utf8.UTFMax:]...)
	}
}

// Tail returns the last lines that were written, as a termination message wants them.
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

// LastBytes cuts text to its end of at most n bytes, between two runes. What is no
// valid UTF-8 is replaced first: it would not survive the way through the API.
func LastBytes(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	cut := max(0, len(text)-n)
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return text[cut:]
}
