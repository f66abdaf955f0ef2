// Package progress shows how far work has come: on a terminal in one line that is written over, in a file or a pipe as a line
// every quarter of a minute.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// pace is how often a line is written where none can be written over, and blink how often one is where it can.
const (
	pace  = 15 * time.Second
	blink = 100 * time.Millisecond
)

// A Line is output with a line of progress at its end. Its methods may be called from any goroutine.
type Line struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex // guards what follows
	text  string
	last  time.Time // when it was written
	shown bool      // on the terminal, now
}

// On returns a Line that writes to out, which may be a Line already.
func On(out io.Writer) *Line {
	if line, ok := out.(*Line); ok {
		return line
	}
	return &Line{out: out, terminal: isTerminal(out), last: time.Now()}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// Set is how far the work is now. It is not written each time.
func (l *Line) Set(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = fmt.Sprintf(format, args...)
	wait := pace
	if l.terminal {
		wait = blink
	}
	if time.Since(l.last) < wait {
		return
	}
	l.last = time.Now()
	if l.terminal {
		l.draw()
	} else {
		fmt.Fprintln(l.out, l.text)
	}
}

func (l *Line) draw() {
	fmt.Fprint(l.out, "\r\x1b[K", l.text)
	l.shown = true
}

func (l *Line) clear() {
	if l.shown {
		fmt.Fprint(l.out, "\r\x1b[K")
		l.shown = false
	}
}

// Write writes above the line of progress.
func (l *Line) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	return l.out.Write(p)
}

// Close removes the line of progress from the terminal.
func (l *Line) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}
