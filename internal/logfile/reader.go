package logfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// Options select a part of a log and its format.
type Options struct {
	// Tail is the number of lines at the end to read; nil reads all.
	Tail *int64
	// Since leaves out lines that were begun earlier, unless it is zero.
	Since time.Time
	// Stream is the only one to read, or empty.
	Stream     string
	Timestamps bool
	// Wait makes the reader follow the log. It is called when all is read that was written so
	// far, returns when more may have been written, and reports whether that was the last.
	Wait func() (last bool, err error)
}

// Open reads a log, the oldest entry first: the container's output, with the time before each line
// if wanted. Without Options.Wait the reader ends at the present end of the log.
func Open(dir string, options Options) (io.ReadCloser, error) {
	return OpenFile(Newest(dir), options)
}

// OpenFile reads the log whose newest file has this path. Older ones have a number at its end: 0.log.1 comes before 0.log.
func OpenFile(log string, options Options) (io.ReadCloser, error) {
	chain, err := openChain(log)
	if err != nil {
		return nil, err
	}
	r := &reader{log: log, options: options, chain: chain, skipping: map[string]bool{}}
	if !options.Since.IsZero() {
		r.since = options.Since.UTC().Format(timeFormat)
	}
	if options.Tail != nil {
		if err := r.skipToTail(*options.Tail); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	r.begin()
	return r, nil
}

// part is one file of a log, from an offset to the size that it had when it was opened.
type part struct {
	file     *os.File
	from, to int64
}

// openChain opens all files of a log, the oldest first, each being the successor of the one
// before although the log is rotated meanwhile.
func openChain(log string) ([]part, error) {
	oldest, err := openOldest(log)
	if err != nil {
		return nil, err
	}
	var chain []part
	for file := oldest; file != nil; {
		next, err := successor(log, file)
		var info fs.FileInfo
		if err == nil {
			info, err = file.Stat() // once it has a successor, it has its final size
		}
		chain = append(chain, part{file: file})
		if err != nil {
			return nil, errors.Join(err, closeAll(chain))
		}
		chain[len(chain)-1].to = info.Size()
		file = next
	}
	return chain, nil
}

func closeAll(chain []part) error {
	var errs []error
	for _, p := range chain {
		errs = append(errs, p.file.Close())
	}
	return errors.Join(errs...)
}

// reader reads the first of the chain. With Wait it opens what comes after the last by itself.
type reader struct {
	log     string
	options Options
	since   string // as in an entry
	chain   []part // never empty
	next    *os.File
	last    bool // Wait says that nothing is written any more

	entries  *bufio.Reader
	half     []byte          // of an entry whose end was not read yet
	skipping map[string]bool // by stream: the line is older than Since
	inLine   bool            // the last entry ended with a piece
	rest     []byte          // of the entry in delivery
}

// begin starts with the first of the chain.
func (r *reader) begin() {
	p, to := r.chain[0], r.chain[0].to
	if r.options.Wait != nil && len(r.chain) == 1 {
		to = 1<<63 - 1 // it still grows
	}
	r.half = nil
	section := io.NewSectionReader(p.file, p.from, to-p.from)
	if r.entries == nil {
		r.entries = bufio.NewReaderSize(section, 4*maxPiece)
	} else {
		r.entries.Reset(section)
	}
}

// Read delivers as many entries as it can without waiting.
func (r *reader) Read(p []byte) (n int, err error) {
	for n == 0 && len(p) > 0 {
		if len(r.rest) == 0 {
			if err := r.advance(); err != nil {
				return 0, err
			}
		}
		for {
			copied := copy(p[n:], r.rest)
			n, r.rest = n+copied, r.rest[copied:]
			if n == len(p) || !r.hasEntry() {
				break
			}
			if err := r.advance(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// hasEntry reports whether the next entry can be had without reading from a file.
func (r *reader) hasEntry() bool {
	buffered, _ := r.entries.Peek(r.entries.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}

// advance reads one entry and renders it into rest if the options select it.
func (r *reader) advance() error {
	line, err := r.nextLine()
	if err != nil {
		return err
	}
	// What is no entry is skipped: a crash of the machine can leave half of one.
	if e, ok := parse(line); ok && r.wants(e) {
		r.render(e)
	}
	return nil
}

func (r *reader) wants(e entry) bool {
	if r.options.Stream != "" && string(e.stream) != r.options.Stream {
		return false
	}
	if r.since == "" {
		return true
	}
	// Pieces of a line stay together.
	older, within := r.skipping[string(e.stream)]
	if !within {
		older = string(e.time) < r.since
	}
	if e.full {
		delete(r.skipping, string(e.stream))
	} else {
		r.skipping[string(e.stream)] = older
	}
	return !older
}

func (r *reader) render(e entry) {
	r.rest = r.rest[:0]
	if r.options.Timestamps && !r.inLine {
		r.rest = append(append(r.rest, e.time...), ' ')
	}
	r.rest = append(r.rest, e.text...)
	if e.full {
		r.rest = append(r.rest, '\n')
	}
	r.inLine = !e.full
}

func (r *reader) nextLine() ([]byte, error) {
	for {
		line, err := r.entries.ReadBytes('\n')
		r.half = append(r.half, line...)
		if errors.Is(err, io.EOF) {
			if err := r.goOn(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		line, r.half = r.half, nil
		return line, nil
	}
}

// goOn is called at the end of a file. goOn returns when there may be more to read.
func (r *reader) goOn() error {
	switch {
	case len(r.chain) > 1:
		err := r.chain[0].file.Close()
		r.chain = r.chain[1:]
		r.begin()
		return err
	case r.options.Wait == nil:
		return io.EOF
	case r.next != nil: // and what was written before the successor was made is read
		err := r.chain[0].file.Close()
		r.chain, r.next = []part{{file: r.next}}, nil
		r.begin()
		return err
	}
	next, err := successor(r.log, r.chain[0].file)
	if err != nil {
		return err
	}
	if next != nil {
		r.next = next
		return nil
	}
	if r.last {
		return io.EOF
	}
	r.last, err = r.options.Wait()
	return err
}

// Close closes the files. No Read may be under way.
func (r *reader) Close() error {
	err := closeAll(r.chain)
	if r.next != nil {
		err = errors.Join(err, r.next.Close())
	}
	r.chain, r.next = nil, nil
	return err
}

type entry struct {
	time, stream, text []byte
	full               bool
}

func parse(line []byte) (entry, bool) {
	if !bytes.HasSuffix(line, []byte("\n")) {
		return entry{}, false
	}
	parts := bytes.SplitN(line[:len(line)-1], []byte(" "), 4)
	if len(parts) < 4 {
		return entry{}, false
	}
	return entry{time: parts[0], stream: parts[1], text: parts[3], full: string(parts[2]) == "F"}, true
}
