package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/internal/linelog"
)

// unwritten is what the file does not have yet. The lock of the store guards it.
type unwritten struct {
	lines   []line
	rewrite bool // the whole file is to be written
	newer   bool // the file is of a newer version, and is to be kept
}

// maxUnwritten is how many lines may wait for the disk. Beyond it, the whole file is written later.
const maxUnwritten = 8192

// write has a line written to the file, later. The lock is held.
func (s *Store) write(l line) {
	switch {
	case s.opts.File == "" || s.rewrite:
	case len(s.lines) == maxUnwritten:
		s.lines, s.rewrite = nil, true
	default:
		s.lines = append(s.lines, l)
	}
}

// idlePeriod is the interval of checks for outdated records, and for a disk that works again.
const idlePeriod = 15 * time.Second

// Run makes records of the reports and writes them to the file, until the context ends. Run returns
// after the last write. Run continues after an error of the disk and records it for the node.
func (s *Store) Run(ctx context.Context) error {
	w := &writer{store: s, path: s.opts.File}
	pause := w.timed()
	ticker := time.NewTicker(idlePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			w.end()
			return nil
		case <-ticker.C:
		case <-s.arrived:
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		pause = w.timed()
	}
}

// timed writes new records and returns how long to collect before the next write: at least three
// times the duration of this write, so that a flood of changes costs the node a quarter of a core
// at most.
func (w *writer) timed() time.Duration {
	begin := time.Now()
	w.flush(begin)
	return max(w.store.opts.Delay, 3*time.Since(begin))
}

// file is what a history needs of one.
type file interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
}

// writer writes the file. It belongs to the goroutine of Run.
type writer struct {
	store *Store
	path  string
	file  file // nil: the file is to be written as a whole
	size  int64
	// live is how large the file was when it was last written as a whole.
	live    int64
	retryAt time.Time
	failing bool
}

const retryWrite = 30 * time.Second

// flush writes new records.
func (w *writer) flush(now time.Time) {
	s := w.store
	s.mu.Lock()
	s.drain()
	if w.path == "" {
		s.mu.Unlock()
		return
	}
	lines, whole, keep := s.lines, s.rewrite || w.file == nil || w.size > max(s.opts.FileSize, 2*w.live), s.newer
	if whole && !w.retryAt.IsZero() && now.Before(w.retryAt) && now.Add(retryWrite).After(w.retryAt) {
		s.mu.Unlock()
		return
	}
	if whole {
		lines = s.snapshot()
	}
	s.lines, s.rewrite, s.newer = nil, false, false
	s.mu.Unlock()
	if len(lines) == 0 && !whole {
		return
	}
	var err error
	if whole {
		err = w.replace(lines, keep)
	} else {
		err = w.append(lines)
	}
	w.report(now, err, keep)
}

// report says when writing begins to fail, and when it works again.
func (w *writer) report(now time.Time, err error, keep bool) {
	s := w.store
	if err == nil && !w.failing {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		w.failing, w.retryAt = false, time.Time{}
		s.opts.Logger.Info("history is written again", "file", w.path)
		s.nodeRecord(now, "written", "the file of the history is written again")
		return
	}
	s.rewrite, s.newer, s.lines = true, s.newer || keep, nil
	w.close()
	w.retryAt = now.Add(retryWrite)
	if !w.failing {
		w.failing = true
		s.opts.Logger.Warn("history cannot be written; a restart would lose it", "file", w.path, "err", err)
		s.nodeRecord(now, "not written", fmt.Sprintf("the file of the history cannot be written, a restart would lose it: %v", err))
	}
}

// snapshot returns the lines of all that is there. The lock is held.
func (s *Store) snapshot() []line {
	lines := make([]line, 0, s.total+2*len(s.logs))
	for _, l := range sorted(s.logs) {
		lines = append(lines, podLine(l))
		for i := range l.entries {
			lines = append(lines, recordLine(l, &l.entries[i]))
		}
		if l.gone != 0 {
			lines = append(lines, line{Op: opGone, UID: l.ref.UID, At: l.gone})
		}
	}
	return append(lines, line{Op: opSeq, Seq: s.seq})
}

func (w *writer) append(lines []line) error {
	var data []byte
	for i := range lines {
		data = appendLine(data, &lines[i])
	}
	n, err := w.file.Write(data)
	w.size += int64(n)
	return err
}

// replace writes the whole file, so that either the old or the new one is there.
func (w *writer) replace(lines []line, keep bool) error {
	w.close()
	if keep {
		if err := os.Rename(w.path, newerName(w.path)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	data := fmt.Appendf(nil, "%s%d\n", heading, fileVersion)
	for i := range lines {
		data = appendLine(data, &lines[i])
	}
	file, err := w.store.create(w.path + ".tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync() // else a power loss could leave an empty file under the name
	}
	if err == nil {
		err = os.Rename(w.path+".tmp", w.path)
	}
	if err != nil {
		return errors.Join(err, file.Close(), os.Remove(w.path+".tmp"))
	}
	w.file, w.size, w.live = file, int64(len(data)), int64(len(data))
	return linelog.SyncDir(filepath.Dir(w.path))
}

// end writes the rest and marks the file as complete.
func (w *writer) end() {
	w.flush(time.Now())
	if w.file == nil {
		return
	}
	s := w.store
	s.mu.Lock()
	last := s.seq
	s.mu.Unlock()
	err := w.append([]line{{Op: opEnd, Seq: last}})
	if err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		s.opts.Logger.Warn("history is not complete", "file", w.path, "err", err)
	}
	w.close()
}

func (w *writer) close() {
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
}
