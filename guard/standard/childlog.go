package standard

import (
	"os"
	"sync"
)

// maxChildLog is how large the log of a child becomes before the next file begins. There are two files.
const maxChildLog = 32 << 20

// childLog keeps what a child process writes, in a file and the one before it. A child that writes without end must not fill
// the disk, and one whose output cannot be kept must not end by that: Write never fails.
type childLog struct {
	path string
	max  int64

	mu   sync.Mutex // guards what follows; two processes may overlap
	file *os.File   // nil if it could not be opened
	size int64
}

// openChildLog begins another file.
func openChildLog(path string, max int64) (*childLog, error) {
	l := &childLog{path: path, max: max}
	return l, l.next()
}

// next keeps the file as the one before, and begins another one.
func (l *childLog) next() (err error) {
	l.closeFile()
	if err := os.Rename(l.path, l.path+".1"); err != nil && !os.IsNotExist(err) {
		return err
	}
	l.file, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return err
}

func (l *childLog) closeFile() {
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.size = nil, 0
}

// Write implements [io.Writer]. What does not fit on the disk is lost.
func (l *childLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || l.size > 0 && l.size+int64(len(p)) > l.max {
		_ = l.next() // without a file, the next write tries again
	}
	if l.file != nil {
		n, _ := l.file.Write(p)
		l.size += int64(n)
	}
	return len(p), nil
}

// Close closes the file.
func (l *childLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeFile()
}
