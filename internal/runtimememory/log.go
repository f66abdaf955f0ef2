package runtimememory

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/statusd/statusd/runtime"
)

// maxEntries and maxEntryBytes bound a log.
const (
	maxEntries    = 1000
	maxEntryBytes = 16 << 10
)

// Log keeps the end of a container's output. Its methods may be called from any goroutine.
type Log struct {
	mu      sync.Mutex // guards what follows
	entries []entry
	dropped int               // how many entries were before these
	open    map[string][]byte // by stream: what came after the last entry
	ended   bool
	changed chan struct{} // closed when there is more to read; nil if no reader waits
}

// entry is a line, or a piece of a long one.
type entry struct {
	at     time.Time
	stream string
	text   []byte
	full   bool // it ends the line
}

// Stream is where the container writes a stream to.
func (l *Log) Stream(name string) io.Writer { return stream{l, name} }

type stream struct {
	log  *Log
	name string
}

func (s stream) Write(data []byte) (int, error) {
	s.log.write(s.name, data)
	return len(data), nil
}

func (l *Log) write(name string, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[string][]byte{}
	}
	for text := append(l.open[name], data...); ; {
		end := bytes.IndexByte(text, '\n')
		full := end >= 0 && end <= maxEntryBytes
		if !full && len(text) < maxEntryBytes {
			l.open[name] = bytes.Clone(text)
			break
		}
		if full {
			l.add(entry{time.Now(), name, bytes.Clone(text[:end]), true})
			text = text[end+1:]
		} else {
			l.add(entry{time.Now(), name, bytes.Clone(text[:maxEntryBytes]), false})
			text = text[maxEntryBytes:]
		}
	}
	l.wake()
}

// add needs mu.
func (l *Log) add(e entry) {
	if len(l.entries) == maxEntries {
		l.entries = l.entries[1:]
		l.dropped++
	}
	l.entries = append(l.entries, e)
}

// wake needs mu.
func (l *Log) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// End reports that the container has ended: an unfinished line is then complete.
func (l *Log) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range []string{runtime.Stdout, runtime.Stderr} {
		if text := l.open[name]; len(text) > 0 {
			l.add(entry{time.Now(), name, text, true})
		}
	}
	l.open, l.ended = nil, true
	l.wake()
}

// Remove drops the log.
func (l *Log) Remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped += len(l.entries)
	l.entries, l.open = nil, nil
}

// Open reads the log as [runtime.Runtime.Logs] does.
func (l *Log) Open(ctx context.Context, options runtime.LogOptions) io.ReadCloser {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &reader{log: l, ctx: ctx, options: options, next: l.dropped, older: map[string]bool{}}
	lines := int64(maxEntries)
	if options.Tail != nil {
		lines = *options.Tail
	}
	for _, name := range []string{runtime.Stderr, runtime.Stdout} {
		wanted := options.Stream == "" || options.Stream == name
		if text := l.open[name]; wanted && !options.Follow && len(text) > 0 && lines > 0 {
			r.open = append(r.open, text...)
			lines-- // a line without an end is a line
		}
	}
	if options.Tail != nil {
		r.next = l.tail(options.Stream, lines)
	}
	r.until = l.dropped + len(l.entries)
	if options.LimitBytes > 0 {
		return io.NopCloser(io.LimitReader(r, options.LimitBytes))
	}
	return io.NopCloser(r)
}

// tail needs mu. tail returns the number of the entry with which the last lines begin.
func (l *Log) tail(name string, lines int64) int {
	seen := map[string]bool{}
	for i := len(l.entries) - 1; i >= 0; i-- {
		e := l.entries[i]
		if name != "" && e.stream != name {
			continue
		}
		if e.full || !seen[e.stream] {
			lines--
		}
		seen[e.stream] = true
		if lines < 0 {
			return l.dropped + i + 1
		}
	}
	return l.dropped
}

// reader reads the entries from a number on. One goroutine may use it.
type reader struct {
	log     *Log
	ctx     context.Context
	options runtime.LogOptions
	next    int             // number of the next entry
	until   int             // where a reader that does not follow ends
	open    []byte          // the rest of the current entry
	older   map[string]bool // by stream: the line was begun before Since
	inLine  bool
	rest    []byte
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		if err := r.advance(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// advance renders the next entry, or waits for it.
func (r *reader) advance() error {
	e, changed, err := r.take()
	switch {
	case err != nil:
		return err
	case changed == nil:
		r.render(e)
		return nil
	}
	select {
	case <-changed:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// take returns the next entry, or a channel that is closed when there may be one.
func (r *reader) take() (e entry, changed <-chan struct{}, err error) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	r.next = max(r.next, l.dropped)
	end := l.dropped + len(l.entries)
	if !r.options.Follow {
		end = min(end, r.until)
	}
	switch {
	case r.next < end:
		e = l.entries[r.next-l.dropped]
		r.next++
		return e, nil, nil
	case len(r.open) > 0: // a line that goes on
		e = entry{at: time.Now(), stream: r.options.Stream, text: r.open}
		r.open = nil
		return e, nil, nil
	case !r.options.Follow || l.ended:
		return entry{}, nil, io.EOF
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return entry{}, l.changed, nil
}

func (r *reader) render(e entry) {
	if r.options.Stream != "" && e.stream != r.options.Stream {
		return
	}
	older, within := r.older[e.stream] // pieces of a line stay together
	if !within {
		older = e.at.Before(r.options.Since)
	}
	delete(r.older, e.stream)
	if !e.full {
		r.older[e.stream] = older
	}
	if older {
		return
	}
	if r.options.Timestamps && !r.inLine {
		r.rest = append(r.rest, e.at.UTC().Format(time.RFC3339Nano)+" "...)
	}
	r.rest = append(r.rest, e.text...)
	if e.full {
		r.rest = append(r.rest, '\n')
	}
	r.inLine = !e.full
}
