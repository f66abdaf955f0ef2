package engine

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/linelog"
	"github.com/statusd/statusd/internal/view"
)

// line is one line of the state file: its checksum, a space, and this as JSON. Lines are appended, so
// that an alert is in the file before an output has it, at the price of one small write. When the
// file has grown, it is replaced by one with what still counts.
type line struct {
	// One of these is set.
	Alert   *storedAlert   `json:"alert,omitempty"`
	Gone    *storedID      `json:"gone,omitempty"`
	Silence *alert.Silence `json:"silence,omitempty"`
	Expired string         `json:"expired,omitempty"`
	// Seen is the number of the newest evaluated record.
	Seen uint64 `json:"seen,omitempty"`
	// Log are transitions of the node's conditions.
	Log []view.Record `json:"log,omitempty"`
}

type storedAlert struct {
	alert.Alert
	Expr  string    `json:"expr,omitempty"`
	Form  string    `json:"form,omitempty"` // of the rule's labels; empty in files of earlier versions
	Over  time.Time `json:"over,omitzero"`
	Told  bool      `json:"told,omitempty"`
	Done  []string  `json:"done,omitempty"`
	Acted bool      `json:"acted,omitempty"`
}

type storedID struct {
	Rule      string `json:"rule"`
	UID       string `json:"uid,omitempty"`
	Container string `json:"container,omitempty"`
	Ended     int64  `json:"ended,omitempty"`
}

// append adds the line to a buffer.
func (l *line) append(b []byte) ([]byte, error) { return linelog.Append(b, l) }

// parseLine reads a line without its end.
func parseLine(data []byte) (*line, error) {
	var l line
	return &l, linelog.Parse(data, &l)
}

func store(a *tracked) *storedAlert {
	s := &storedAlert{Alert: a.Alert, Over: a.over, Told: a.told, Done: a.done, Acted: a.acted}
	if a.rule != nil {
		s.Expr, s.Form = a.rule.Expr, fingerprint(a.rule.Labels)
	}
	return s
}

// stateFile is the file in which the state survives a restart and kill -9. A nil file stores nothing.
type stateFile struct {
	path string
	file *os.File
	size int64
	// compact is the size at which it is replaced.
	compact int64
	// create makes the file that becomes the new one, as [os.CreateTemp] does.
	create func(dir, pattern string) (*os.File, error)
}

// minCompact is how large the file may become before it is ever replaced.
const minCompact = 256 << 10

// readState returns the lines of a file and the number of unreadable ones. An unfinished last line
// counts as neither.
func readState(path string) (lines []*line, broken int, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for len(data) > 0 {
		text, rest, finished := bytes.Cut(data, []byte("\n"))
		data = rest
		l, err := parseLine(text)
		switch {
		case err == nil:
			lines = append(lines, l)
		case finished:
			broken++
		}
	}
	return lines, broken, nil
}

// replace writes a new file with the given lines, which takes the place of the old one at once or
// not at all.
func (f *stateFile) replace(data []byte) (err error) {
	temporary, err := f.create(filepath.Dir(f.path), filepath.Base(f.path)+".tmp*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = temporary.Close()
			_ = os.Remove(temporary.Name())
		}
	}()
	if _, err = temporary.Write(data); err != nil {
		return err
	}
	if err = temporary.Sync(); err != nil {
		return err
	}
	if err = os.Rename(temporary.Name(), f.path); err != nil {
		return err
	}
	f.close()
	f.file, f.size = temporary, int64(len(data))
	f.compact = max(minCompact, 4*f.size)
	return linelog.SyncDir(filepath.Dir(f.path))
}

// append adds lines to the file.
func (f *stateFile) append(data []byte) error {
	n, err := f.file.Write(data)
	f.size += int64(n)
	if err != nil {
		f.close() // a line may be there in part: nothing may follow it
	}
	return err
}

// takesNoWrites reports whether an error comes from a full or read-only disk.
func takesNoWrites(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

func (f *stateFile) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}
