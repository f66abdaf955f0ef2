package logfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// lookAgain is how often a log that is followed is looked at although the kernel reports no
// change: it may be out of watches, or the log's directory was removed.
const lookAgain = time.Second

// Delivery is a log in delivery to a caller: it ends with a context and after some bytes.
type Delivery struct {
	io.ReadCloser
	ctx   context.Context
	limit int64 // bytes to come; 0 is no limit, and less is that it is reached
	stop  func()
}

// Request is a request for the log of a container.
type Request struct {
	Options
	// Newest is the path of the newest file of the log.
	Newest string
	// Follow keeps the log open until the container has ended: until Ended is closed.
	Follow bool
	Ended  <-chan struct{}
	// LimitBytes is how much is delivered; 0 is all.
	LimitBytes int64
}

// Deliver opens a log until ctx ends. The log of a container that was not started yet is waited for if it is followed, and
// empty if not.
func (w *Watches) Deliver(ctx context.Context, request Request) (*Delivery, error) {
	d := &Delivery{ctx: ctx, limit: request.LimitBytes, stop: func() {}}
	if request.Follow {
		var changed <-chan struct{}
		changed, d.stop = w.Watch(filepath.Dir(request.Newest))
		request.Wait = func() (bool, error) { return request.more(ctx, changed) }
	}
	var err error
	if d.ReadCloser, err = request.open(); err != nil {
		d.stop()
		return nil, err
	}
	return d, nil
}

func (r *Request) open() (io.ReadCloser, error) {
	for last := r.Wait == nil; ; {
		file, err := OpenFile(r.Newest, r.Options)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
		if last {
			return io.NopCloser(strings.NewReader("")), nil
		}
		if last, err = r.Wait(); err != nil {
			return nil, err
		}
	}
}

// more returns when the container may have written more. more reports whether it has ended.
func (r *Request) more(ctx context.Context, changed <-chan struct{}) (ended bool, err error) {
	look := time.NewTimer(lookAgain)
	defer look.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-r.Ended:
		return true, nil
	case <-changed:
	case <-look.C:
	}
	return false, nil
}

func (l *Delivery) Read(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	if l.limit < 0 {
		return 0, io.EOF
	}
	if l.limit > 0 {
		p = p[:min(int64(len(p)), l.limit)]
	}
	n, err := l.ReadCloser.Read(p)
	if l.limit > 0 {
		if l.limit -= int64(n); l.limit == 0 {
			l.limit = -1
		}
	}
	return n, err
}

// Close ends the delivery. Close may be called again.
func (l *Delivery) Close() error {
	l.stop()
	l.stop = func() {}
	return l.ReadCloser.Close()
}
