package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Life is the one run of a process: its parts in order, the messages to systemd, and the resources to close at
// the end.
type Life struct {
	// Name is the prefix of errors.
	Name string
	// Timeout bounds the stop.
	Timeout time.Duration
	// Supervisor receives the messages of sd_notify, as long as Alive returns.
	Supervisor Supervisor
	Alive      func()
	Logger     *slog.Logger

	ran     atomic.Bool
	closing sync.Once
	closers []io.Closer
}

// OnClose has something closed by [Life.Close], the last one first.
func (l *Life) OnClose(c io.Closer) { l.closers = append(l.closers, c) }

// HasRun reports whether Run was called.
func (l *Life) HasRun() bool { return l.ran.Load() }

// Run runs the parts until ctx ends, stops them in the reverse order, and closes the resources. Run may be called
// once.
func (l *Life) Run(ctx context.Context, parts []Part) error {
	if l.ran.Swap(true) {
		return fmt.Errorf("%s: Run may be called only once", l.Name)
	}
	supervisor := Part{Name: "supervisor", Run: func(own context.Context) error {
		return l.Supervisor.Supervise(own, l.Logger, l.Alive, func() bool { return errors.Is(context.Cause(ctx), ErrReload) })
	}}
	err := RunParts(ctx, l.Logger, l.Timeout, append(slices.Clip(parts), supervisor))
	if err != nil {
		err = fmt.Errorf("%s: %w", l.Name, err)
	}
	return errors.Join(err, l.Close())
}

// Close closes the resources, once.
func (l *Life) Close() error {
	var problems []error
	l.closing.Do(func() {
		for _, c := range slices.Backward(l.closers) {
			if err := c.Close(); !errors.Is(err, net.ErrClosed) { // a server may have closed its listener
				problems = append(problems, err)
			}
		}
	})
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("%s: close: %w", l.Name, err)
	}
	return nil
}

// ListenAt binds an address of the config, nil if it is empty. The error names the flag.
func ListenAt(address, flag string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := Listen(address)
	if err != nil {
		return nil, fmt.Errorf("endpoints: %w; choose another --%s, or port 0 for a free one", err, flag)
	}
	return listener, nil
}

// AddressOf returns a listener's address, or "".
func AddressOf(listener net.Listener) string {
	if listener == nil {
		return ""
	}
	return listener.Addr().String()
}

// RegisterBuild adds the metrics common to all processes. The metrics of Go and of the process may be
// registered already.
func RegisterBuild(r prometheus.Registerer, version string) {
	_ = r.Register(collectors.NewGoCollector())
	_ = r.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "statusd_build_info", Help: "Always 1.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 }))
}
