package logfile

import (
	"context"
	"io"
)

// Delivery is a log in delivery to a caller: it ends with a context and after some bytes.
type Delivery struct {
	io.ReadCloser
	ctx   context.Context
	limit int64 // bytes to come; 0 is no limit, and less is that it is reached
	stop  func()
}

// NewDelivery delivers what is put into its ReadCloser.
func NewDelivery(ctx context.Context, limit int64) *Delivery {
	return &Delivery{ctx: ctx, limit: limit}
}

// OnClose has Close call stop.
func (l *Delivery) OnClose(stop func()) { l.stop = stop }

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

func (l *Delivery) Close() error {
	l.Stop()
	return l.ReadCloser.Close()
}

// Stop calls what OnClose was given.
func (l *Delivery) Stop() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}
