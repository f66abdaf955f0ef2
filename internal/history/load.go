package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// found is what a file had.
type found struct {
	version int // 0: there is no file, or no history in it
	damaged int // lines that could not be read
	torn    bool
	ended   bool // the last process has stopped in order
	err     error
}

// load reads the file of an earlier process. Whatever is wrong with it, the store begins.
func (s *Store) load(now time.Time) {
	s.purged = now
	if s.opts.File == "" {
		s.seq = uint64(now.UnixMicro())
		return
	}
	var f found
	file, err := os.Open(s.opts.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.ended = true
	case err != nil:
		f.err = err
	default:
		f = s.read(io.LimitReader(file, 4*max(s.opts.FileSize, 1<<20)))
		file.Close()
	}
	s.begin(f, now)
}

// begin sets the next sequence number, and records gaps. The numbers start above all numbers that an
// earlier process can have given, including unwritten records: the time in microseconds grows faster
// than the numbers.
func (s *Store) begin(f found, now time.Time) {
	last := s.seq
	s.seq = min(max(last+1, uint64(max(now.UnixMicro(), 1))), maxSeq)
	for _, l := range s.logs {
		if l.gone > unixNano(now) { // the clock was set back
			l.gone = unixNano(now)
		}
	}
	if !f.ended {
		s.forgotten = s.seq
	}
	switch {
	case f.err != nil:
		s.problem(now, "not read", fmt.Sprintf("the file of the history cannot be read: %v", f.err))
	case f.version > fileVersion:
		s.newer = true
		s.problem(now, "not read", fmt.Sprintf("the file of the history has version %d, which is newer than %d; it is kept as %s", f.version, fileVersion, newerName(s.opts.File)))
	case f.version == 0 && !f.ended:
		s.problem(now, "not read", "the file of the history is damaged from its first line on")
	case f.damaged > 0:
		s.problem(now, "incomplete", fmt.Sprintf("%d lines of the file of the history are damaged", f.damaged))
	case !f.ended:
		s.problem(now, "incomplete", "the last process was killed; what happened in its last moments may be missing")
	}
	s.rewrite = true // drops damaged and outdated records
	s.purged = time.Time{}
	s.purge(now)
	s.shed()
}

func (s *Store) problem(now time.Time, to, message string) {
	s.opts.Logger.Warn("history is incomplete", "file", s.opts.File, "problem", message)
	s.nodeRecord(now, to, message)
}

// maxLine is longer than any line that is written.
const maxLine = 64 << 10

// read applies the lines of a file.
func (s *Store) read(from io.Reader) (f found) {
	lines := bufio.NewReaderSize(from, maxLine)
	text, err := lines.ReadSlice('\n')
	version, ok := parseHeading(bytes.TrimSuffix(text, []byte("\n")))
	if err != nil || !ok {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			f.err = err
		}
		return f
	}
	if f.version = version; version > fileVersion {
		return f
	}
	for {
		text, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			f.damaged++
			f.ended = false
			if !skipLine(lines) {
				return f
			}
			continue
		case errors.Is(err, io.EOF):
			f.torn = len(text) > 0
			f.ended = f.ended && !f.torn
			return f
		case err != nil:
			f.err = err
			return f
		}
		l, err := parseLine(text[:len(text)-1])
		if err != nil {
			f.damaged++
			continue
		}
		f.ended = l.Op == opEnd
		s.apply(&l)
	}
}

func skipLine(lines *bufio.Reader) bool {
	for {
		switch _, err := lines.ReadSlice('\n'); {
		case err == nil:
			return true
		case !errors.Is(err, bufio.ErrBufferFull):
			return false
		}
	}
}

// apply takes a line of the file.
func (s *Store) apply(l *line) {
	s.seq = max(s.seq, min(l.Seq, maxSeq))
	known := s.logs[l.UID]
	switch {
	case l.Op == opPod && known == nil:
		s.keep(&log{ref: Ref{UID: l.UID, Namespace: l.Namespace, Name: l.Name}, created: l.At, dropped: max(l.Dropped, 0)})
	case known == nil:
	case l.Op == opPod:
		known.gone = 0
	case l.Op == opGone:
		known.gone = l.At
	case l.Op == opAccepted:
		known.accept(l.Through, l.At, l.Seq)
	case l.Op == opRecord:
		e := l.entry()
		if n := len(known.entries); n > 0 && known.entries[n-1].seq >= e.seq {
			return
		}
		s.seq = max(s.seq, e.changed)
		s.append(known, e)
	}
}

// accept is an acceptance of an earlier process.
func (l *log) accept(through uint64, at int64, seq uint64) {
	for i := range l.entries {
		if e := &l.entries[i]; e.version != 0 && e.seq <= through {
			e.accepted, e.version, e.changed = at, 0, max(e.changed, min(seq, maxSeq))
			l.changed = max(l.changed, e.changed)
		}
	}
}

func newerName(file string) string { return file + ".newer" }
