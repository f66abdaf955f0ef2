package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/statusd/statusd/test/campaign"
)

const (
	rotateAt = 256 << 20
	keep     = 4 // old files
)

// writer floods a log.
type writer struct {
	path           string
	file           *os.File
	size           int64 // of the file
	written, lines int64
	wanted         int64 // lines that count
}

func (w *writer) open() (err error) {
	w.file, err = os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	w.size = 0
	return err
}

func (w *writer) close() { w.file.Close() }

// awaitReader waits until the reader has saved its first position: lines written from then on count.
func (w *writer) awaitReader(ctx context.Context) error {
	return campaign.Await(ctx, 10*time.Millisecond, func() error {
		_, err := os.Stat(w.path + "@state")
		return err
	})
}

// write writes at a rate in MB/s: typical lines of a busy kubelet, and in each MB one line that
// counts.
func (w *writer) write(ctx context.Context, rate int, d time.Duration) error {
	var lines bytes.Buffer
	for i := 0; lines.Len() < 1e6; i++ {
		fmt.Fprintf(&lines, "I1115 10:00:00.%06d    4242 kubelet.go:2500] \"SyncLoop (probe)\" probe=\"readiness\" status=\"ready\" pod=\"default/web-7d4b9c5d8-%05d\"\n", i, i)
	}
	count := int64(bytes.Count(lines.Bytes(), []byte("\n")))
	begin := time.Now()
	for time.Since(begin) < d {
		campaign.Out.Set("%d MB written, %s of %s", w.written>>20, time.Since(begin).Round(time.Second), d)
		for due := int64(time.Since(begin).Seconds() * float64(rate) * 1e6); w.written < due; {
			w.wanted++
			n, err := fmt.Fprintf(w.file, "E1115 10:00:00.000000    4242 kubelet.go:2400] \"Skipping pod synchronization\" err=\"PLEG is not healthy: %d\"\n%s", w.wanted, lines.Bytes())
			if err != nil {
				return err
			}
			w.written += int64(n)
			w.lines += 1 + count
			if w.size += int64(n); w.size >= rotateAt {
				if err := w.rotate(); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

func (w *writer) rotate() error {
	w.close()
	for n := keep; n > 0; n-- {
		from := w.path
		if n > 1 {
			from = fmt.Sprintf("%s.%d", w.path, n-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", w.path, n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return w.open()
}
