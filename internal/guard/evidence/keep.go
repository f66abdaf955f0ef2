package evidence

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/linelog"
)

// Part is one file of a case.
type Part struct {
	// Name of the file.
	Name string
	// Write writes the part. It must end with ctx. Output beyond [Options.PartBytes] is cut off.
	Write func(ctx context.Context, w io.Writer) error
}

// JSON is a part that has a value as JSON.
func JSON(name string, value func() any) Part {
	return Part{name, func(_ context.Context, w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value())
	}}
}

// Options configure a [Store]. Dir is required.
type Options struct {
	// Dir has the cases. It is created if it does not exist.
	Dir string
	// Parts are written beside case.json, which has the verdict and its evidence.
	Parts []Part
	// Count is how many cases there may be, 20 if 0; Bytes how much they may take in all, 64 MiB if 0; PartBytes
	// how much each part may, 4 MiB if 0.
	Count            int
	Bytes, PartBytes int64
	// PartTimeout is how long a part may take; 3 s if 0.
	PartTimeout time.Duration
}

// Store keeps cases. Use it from one goroutine at a time.
type Store struct {
	o         Options
	writeFile func(path string, data []byte) error
}

// New makes a store. New writes nothing.
func New(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("keep: Dir is required")
	}
	o.Count = cmp.Or(o.Count, 20)
	o.Bytes = cmp.Or(o.Bytes, 64<<20)
	o.PartBytes = cmp.Or(o.PartBytes, 4<<20)
	o.PartTimeout = cmp.Or(o.PartTimeout, 3*time.Second)
	return &Store{o, writeFile}, nil
}

const (
	layout = "20060102T150405.000Z"
	// unfinished is how the name of a directory begins that is being written.
	unfinished = ".new-"
)

// Keep writes one case and returns its directory. An error lists the missing parts; the directory is
// empty only if nothing was kept.
func (s *Store) Keep(ctx context.Context, c guard.Case) (dir string, err error) {
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return "", fmt.Errorf("keep: %w", err)
	}
	// Before the new one is written: a disk that is nearly full may have room then.
	problems := []error{s.trim(1)}
	temp, err := os.MkdirTemp(s.o.Dir, unfinished)
	if err != nil {
		return "", errors.Join(append(problems, fmt.Errorf("keep: %w", err))...)
	}
	parts := append([]Part{JSON("case.json", func() any { return c })}, s.o.Parts...)
	written := 0
	for _, part := range parts {
		kept, err := s.write(ctx, temp, part)
		if err != nil {
			problems = append(problems, fmt.Errorf("keep: %s: %w", part.Name, err))
		}
		if kept {
			written++
		}
	}
	if written == 0 {
		return "", errors.Join(append(problems, os.RemoveAll(temp))...)
	}
	dir = filepath.Join(s.o.Dir, s.stamp(c.At)+"-"+string(c.Target)+"-"+fileName(c.Reason))
	if err := os.Rename(temp, dir); err != nil {
		return "", errors.Join(append(problems, fmt.Errorf("keep: %w", err), os.RemoveAll(temp))...)
	}
	return dir, errors.Join(append(problems, linelog.SyncDir(s.o.Dir), s.trim(0))...)
}

// stamp returns the time in the name of a case. Names sort by this time, so it is later than the time of each kept case,
// also if the clock was set back since. The case itself has the true time.
func (s *Store) stamp(at time.Time) string {
	at = at.UTC()
	kept, _ := s.List() // what cannot be listed is found by the rename
	if n := len(kept); n > 0 {
		name := filepath.Base(kept[n-1].Dir)
		if last, err := time.Parse(layout, name[:min(len(layout), len(name))]); err == nil && at.Sub(last) < time.Millisecond {
			at = last.Add(time.Millisecond)
		}
	}
	return at.Format(layout)
}

// fileName is a reason as a part of a name: rules may have any.
func fileName(reason string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, reason)
	return name[:min(len(name), 60)]
}

// write writes one part. After a failure the output so far stays: half a log is better than no log.
func (s *Store) write(ctx context.Context, dir string, part Part) (kept bool, err error) {
	limited, cancel := context.WithTimeout(ctx, s.o.PartTimeout)
	defer cancel()
	var content bytes.Buffer
	full := &limit{to: &content, left: s.o.PartBytes}
	problem := part.Write(limited, full)
	if errors.Is(problem, errFull) {
		problem = fmt.Errorf("cut off after %d bytes", s.o.PartBytes)
	}
	if content.Len() == 0 && problem != nil {
		return false, problem
	}
	path := filepath.Join(dir, part.Name)
	if err := s.writeFile(path, content.Bytes()); err != nil {
		_ = os.Remove(path) // a part of the file may exist
		return false, err
	}
	if problem != nil {
		return true, fmt.Errorf("incomplete: %w", problem)
	}
	return true, nil
}

func writeFile(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

var errFull = errors.New("keep: part is full")

// limit takes so many bytes and refuses the rest.
type limit struct {
	to   io.Writer
	left int64
}

// Write implements [io.Writer].
func (l *limit) Write(p []byte) (int, error) {
	if int64(len(p)) <= l.left {
		l.left -= int64(len(p))
		return l.to.Write(p)
	}
	n, err := l.to.Write(p[:l.left])
	l.left -= int64(n)
	return n, errors.Join(err, errFull)
}

// Kept is one case on disk.
type Kept struct {
	Dir   string
	Bytes int64
}

// List are the cases on disk, the oldest first.
func (s *Store) List() ([]Kept, error) {
	entries, err := os.ReadDir(s.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("keep: %w", err)
	}
	var kept []Kept
	for _, entry := range entries { // by name, which begins with the time
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), unfinished) {
			dir := filepath.Join(s.o.Dir, entry.Name())
			kept = append(kept, Kept{dir, size(dir)})
		}
	}
	return kept, nil
}

func size(dir string) (total int64) {
	entries, _ := os.ReadDir(dir) // a vanished file has size 0
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
	}
	return total
}

// trim removes the oldest cases until there is room for so many more, and what a crash has left unfinished.
func (s *Store) trim(room int) error {
	leftovers, err := filepath.Glob(filepath.Join(s.o.Dir, unfinished+"*"))
	problems := []error{err}
	for _, dir := range leftovers {
		problems = append(problems, os.RemoveAll(dir))
	}
	kept, err := s.List()
	problems = append(problems, err)
	var total int64
	for _, k := range kept {
		total += k.Bytes
	}
	for len(kept) > 0 && (len(kept) > s.o.Count-room || total > s.o.Bytes) {
		problems = append(problems, os.RemoveAll(kept[0].Dir))
		total -= kept[0].Bytes
		kept = slices.Delete(kept, 0, 1)
	}
	return errors.Join(problems...)
}
