package logfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
)

// Open reads a log as it is now, the oldest entry first: what the container wrote, with
// the time before each line if wanted, or only the last lines of it if tail is not 0.
func Open(dir string, tail int, timestamps bool) (io.ReadCloser, error) {
	r := &reader{timestamps: timestamps}
	for i := 0; ; i++ {
		file, err := os.Open(filePath(dir, i))
		if errors.Is(err, fs.ErrNotExist) && i == 0 {
			continue // between two steps of a rotation
		}
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.files = append(r.files, file)
		info, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.sizes = append(r.sizes, info.Size())
	}
	if len(r.files) == 0 {
		return nil, fs.ErrNotExist
	}
	slices.Reverse(r.files)
	slices.Reverse(r.sizes)
	if tail > 0 {
		lines, err := r.countLines()
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.skip = max(0, lines-tail)
	}
	r.rewind()
	return r, nil
}

type reader struct {
	files      []*os.File
	sizes      []int64 // what was there when it was opened; what comes later is not read
	timestamps bool
	entries    *bufio.Reader
	skip       int    // lines not to deliver
	inLine     bool   // the last entry ended with a piece
	rest       []byte // of the entry in delivery
}

func (r *reader) rewind() {
	sections := make([]io.Reader, len(r.files))
	for i, file := range r.files {
		sections[i] = io.NewSectionReader(file, 0, r.sizes[i])
	}
	r.entries = bufio.NewReaderSize(io.MultiReader(sections...), 2*maxPiece)
}

func (r *reader) countLines() (int, error) {
	r.rewind()
	for n := 0; ; {
		e, err := r.next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		if e.full {
			n++
		}
	}
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		e, err := r.next()
		if err != nil {
			return 0, err
		}
		if r.skip > 0 {
			if e.full {
				r.skip--
			}
			continue
		}
		r.rest = r.render(e)
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *reader) render(e entry) []byte {
	var out []byte
	if r.timestamps && !r.inLine {
		out = append(append(out, e.time...), ' ')
	}
	out = append(out, e.text...)
	if e.full {
		out = append(out, '\n')
	}
	r.inLine = !e.full
	return out
}

type entry struct {
	time, text []byte
	full       bool
}

// next skips what is no entry: a crash of the machine can leave half of one.
func (r *reader) next() (entry, error) {
	for {
		line, err := r.entries.ReadBytes('\n')
		if err != nil {
			return entry{}, err // io.EOF, also with half an entry
		}
		parts := bytes.SplitN(line[:len(line)-1], []byte(" "), 4)
		if len(parts) == 4 {
			return entry{time: parts[0], text: parts[3], full: string(parts[2]) == "F"}, nil
		}
	}
}

func (r *reader) Close() error {
	var errs []error
	for _, file := range r.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
