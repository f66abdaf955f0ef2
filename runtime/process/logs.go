package process

import (
	"context"
	"fmt"
	"io"

	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/runtime"
)

// Logs implements [runtime.Runtime]. A reader that follows and falls behind by more than all
// files that are kept of a log misses what was removed meanwhile.
func (r *Runtime) Logs(ctx context.Context, id string, options runtime.LogOptions) (io.ReadCloser, error) {
	r.mu.Lock()
	c, err := r.find(id)
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	log, err := r.logs.Deliver(ctx, logfile.Request{
		Options: logfile.Options{Tail: options.Tail, Since: options.Since, Stream: options.Stream, Timestamps: options.Timestamps},
		Newest:  logfile.Newest(c.dir.Logs()), Follow: options.Follow, Ended: c.ended, LimitBytes: options.LimitBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("process: logs of %s: %w", id, err)
	}
	return log, nil
}
