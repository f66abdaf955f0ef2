package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/runtime"
)

// rotateEvery is how often the sizes of logs are looked at.
const rotateEvery = 10 * time.Second

// Logs implements [runtime.Runtime].
func (r *Runtime) Logs(ctx context.Context, id string, options runtime.LogOptions) (io.ReadCloser, error) {
	c, _, err := r.lookup(id)
	if err != nil {
		return nil, err
	}
	log, err := r.logs.Deliver(ctx, logfile.Request{
		Options: logfile.Options{Tail: options.Tail, Since: options.Since, Stream: options.Stream, Timestamps: options.Timestamps},
		Newest:  c.log, Follow: options.Follow, Ended: c.ended, LimitBytes: options.LimitBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("cri: logs of %s: %w", id, err)
	}
	log.ReadCloser = &wholeLines{ReadCloser: log.ReadCloser, ended: c.ended}
	return log, nil
}

// wholeLines gives the last line of a container that has ended an end: container runtimes log a line without one as a piece.
type wholeLines struct {
	io.ReadCloser
	ended <-chan struct{}
	open  bool // the last byte ended no line
}

func (w *wholeLines) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.open = p[n-1] != '\n'
	}
	if n > 0 || !errors.Is(err, io.EOF) || !w.open || len(p) == 0 {
		return n, err
	}
	select {
	case <-w.ended:
		w.open, p[0] = false, '\n'
		return 1, nil
	default:
		return n, err
	}
}

// rotateLogs rotates logs that have grown too long, until ctx ends.
func (r *Runtime) rotateLogs(ctx context.Context) {
	wake.Every(ctx, rotateEvery, func() {
		for _, c := range r.running() {
			if err := r.rotate(ctx, c); err != nil && ctx.Err() == nil {
				r.options.Logger.Warn("rotating a log failed, will retry", "uid", c.uid, "path", c.log, "err", err)
			}
		}
	})
}

func (r *Runtime) running() (all []*container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		for _, c := range p.containers {
			if c.view.State == runtime.Running {
				all = append(all, c)
			}
		}
	}
	return all
}

func (r *Runtime) rotate(ctx context.Context, c *container) error {
	info, err := os.Stat(c.log)
	switch {
	case errors.Is(err, os.ErrNotExist): // an earlier rotation was interrupted, or there is no log
	case err != nil:
		return err
	case info.Size() < r.options.LogMaxBytes:
		return nil
	default:
		if err := logfile.Rotate(c.log, r.options.LogMaxFiles); err != nil {
			return err
		}
	}
	bounded, cancel := r.ask(ctx)
	defer cancel()
	_, err = r.cri.ReopenContainerLog(bounded, &runtimeapi.ReopenContainerLogRequest{ContainerId: c.id})
	if err != nil && !isGone(err) {
		return err
	}
	return nil
}
