package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/runtime"
)

// lookAgain is how often a log that is followed is looked at although the kernel reports no
// change: it may be out of watches, or the log's directory was removed.
const lookAgain = time.Second

// Logs implements [runtime.Runtime]. A reader that follows and falls behind by more than all
// files that are kept of a log misses what was removed meanwhile.
func (r *Runtime) Logs(ctx context.Context, id string, options runtime.LogOptions) (io.ReadCloser, error) {
	r.mu.Lock()
	c, err := r.find(id)
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	log := logfile.NewDelivery(ctx, options.LimitBytes)
	asked := logfile.Options{Tail: options.Tail, Since: options.Since, Stream: options.Stream, Timestamps: options.Timestamps}
	if options.Follow {
		changed, stop := r.logs.Watch(c.dir.Logs())
		log.OnClose(stop)
		asked.Wait = func() (bool, error) { return c.awaitOutput(ctx, changed) }
	}
	log.ReadCloser, err = c.openLog(ctx, asked)
	if err != nil {
		log.Stop()
		return nil, fmt.Errorf("process: logs of %s: %w", id, err)
	}
	return log, nil
}

// openLog waits, if it follows, for the log of a container that was not started yet.
func (c *container) openLog(ctx context.Context, options logfile.Options) (io.ReadCloser, error) {
	for last := options.Wait == nil; ; {
		file, err := logfile.Open(c.dir.Logs(), options)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
		if last {
			return io.NopCloser(nothing{}), nil
		}
		if last, err = options.Wait(); err != nil {
			return nil, err
		}
	}
}

// nothing is the log of a container that wrote none.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }

// awaitOutput returns when the container may have written more. It reports whether it has ended.
func (c *container) awaitOutput(ctx context.Context, changed <-chan struct{}) (ended bool, err error) {
	look := time.NewTimer(lookAgain)
	defer look.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-c.ended:
		return true, nil
	case <-changed:
	case <-look.C:
	}
	return false, nil
}
