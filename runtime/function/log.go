package function

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/statusd/statusd/runtime"
)

// maxLogLines is how much of a container's log is kept.
const maxLogLines = 1000

// log keeps the last lines that a container has written.
type log struct {
	mu      sync.Mutex // guards what follows
	lines   []line
	partial []byte // what came after the last line
}

type line struct {
	at   time.Time
	text string
}

// maxLineBytes is where a line is cut, so that a log has a bound.
const maxLineBytes = 16 << 10

func (l *log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	written := len(data)
	for len(data) > 0 {
		end, skip := bytes.IndexByte(data, '\n'), 1
		if room := maxLineBytes - len(l.partial); end < 0 && len(data) >= room || end > room {
			end, skip = room, 0
		}
		if end < 0 {
			l.partial = append(l.partial, data...)
			break
		}
		l.add(string(append(l.partial, data[:end]...)))
		l.partial, data = nil, data[end+skip:]
	}
	return written, nil
}

func (l *log) add(text string) {
	if len(l.lines) == maxLogLines {
		l.lines = l.lines[1:]
	}
	l.lines = append(l.lines, line{time.Now(), text})
}

func (l *log) read(options runtime.LogOptions) io.ReadCloser {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	if len(l.partial) > 0 {
		lines = append(lines[:len(lines):len(lines)], line{time.Now(), string(l.partial)})
	}
	if options.Tail != nil {
		lines = lines[max(0, len(lines)-int(*options.Tail)):]
	}
	var out strings.Builder
	for _, line := range lines {
		if options.Timestamps {
			out.WriteString(line.at.UTC().Format(time.RFC3339Nano) + " ")
		}
		out.WriteString(line.text + "\n")
	}
	return io.NopCloser(strings.NewReader(out.String()))
}
