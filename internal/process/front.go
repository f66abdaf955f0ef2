package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Fronts hand the addresses of endpoints from a process to the next one in the same program, as at a reload. The addresses stay bound
// meanwhile, and requests are answered. The zero value works; nil: no process follows another.
type Fronts struct {
	mu   sync.Mutex // guards left
	left []*Front   // of the process that has ended
}

// Front is an address where one process after the other serves its [Endpoints]. Make it with [Fronts.Listen] or [Fronts.OpenSocket].
type Front struct {
	of       *Fronts // nil: no process follows
	asked    where
	listener net.Listener
	left     bool // to the next process; guarded by of.mu
	current  atomic.Pointer[serving]

	starting sync.Once
	stopping sync.Once
	http     *http.Server  // set when it has started
	ended    chan struct{} // closed when nothing more is accepted
	err      error         // of http, before ended is closed
	stopped  error         // of stop
}

// where a front was asked to listen.
type where struct{ network, address string }

// serving is what answers requests.
type serving struct {
	handler http.Handler
	// next is closed when the next process serves; nil while the process of the handler runs.
	next chan struct{}
}

// Keep closes the fronts of the process before that listen at other addresses, so that these can be bound. Call it before Listen.
func (f *Fronts) Keep(addresses ...string) error {
	return f.closeOthers("tcp", addresses)
}

// Listen binds a TCP address of the config, or takes it over; nil if it is empty. The error names the flag.
func (f *Fronts) Listen(address, flag string) (*Front, error) {
	if front := f.take(where{"tcp", address}); front != nil {
		return front, nil
	}
	listener, err := ListenAt(address, flag)
	if listener == nil || err != nil {
		return nil, err
	}
	return newFront(f, where{"tcp", address}, listener), nil
}

// OpenSocket binds a Unix socket, or takes it over; nil if the path is empty or cannot be bound: see [OpenSocket].
func (f *Fronts) OpenSocket(log *slog.Logger, name, path string) *Front {
	if err := f.closeOthers("unix", []string{path}); err != nil {
		log.Warn("socket of the former config not closed", "socket", name, "err", err)
	}
	if front := f.take(where{"unix", path}); front != nil {
		return front
	}
	listener := OpenSocket(log, name, path)
	if listener == nil {
		return nil
	}
	return newFront(f, where{"unix", path}, listener)
}

// Close closes the addresses that the last process left for a successor, if no successor was made. Call it when no
// process runs any more.
func (f *Fronts) Close() error {
	return errors.Join(f.closeOthers("tcp", nil), f.closeOthers("unix", nil))
}

func (f *Fronts) closeOthers(network string, addresses []string) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var problems []error
	f.left = slices.DeleteFunc(f.left, func(front *Front) bool {
		if front.asked.network != network || slices.Contains(addresses, front.asked.address) {
			return false
		}
		problems = append(problems, front.stop())
		return true
	})
	return errors.Join(problems...)
}

func (f *Fronts) take(asked where) *Front {
	if f == nil || asked.address == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.left, func(front *Front) bool { return front.asked == asked })
	if at < 0 {
		return nil
	}
	front := f.left[at]
	f.left = slices.Delete(f.left, at, at+1)
	front.left = false
	return front
}

func newFront(of *Fronts, asked where, listener net.Listener) *Front {
	return &Front{of: of, asked: asked, listener: listener, ended: make(chan struct{})}
}

// Address is where it listens, empty for nil.
func (f *Front) Address() string {
	if f == nil {
		return ""
	}
	return f.listener.Addr().String()
}

// Serve has requests answered by e until ctx ends. Requests are answered however many silent or slow connections are open. With
// the cause [ErrReload] the front is left to the next process: until that process serves, e keeps answering reads.
func (f *Front) Serve(ctx context.Context, e *Endpoints) error {
	if before := f.current.Swap(&serving{handler: e.Handler()}); before != nil {
		close(before.next)
	}
	f.starting.Do(f.start)
	select {
	case <-f.ended:
		return fmt.Errorf("serve %s: %w", f.Address(), f.err)
	case <-ctx.Done():
	}
	if f.of == nil || !errors.Is(context.Cause(ctx), ErrReload) {
		return f.stop()
	}
	ended := *e
	ended.Ready = []Check{{Name: "reload", Err: func() error { return errors.New("the config is being reloaded") }}}
	f.current.Store(&serving{handler: ended.Handler(), next: make(chan struct{})})
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.left = true
	f.of.left = append(f.of.left, f)
	return nil
}

func (f *Front) start() {
	guests := newCrowd(f.listener)
	f.http = &http.Server{
		Handler:           f,
		ConnState:         guests.state,
		ConnContext:       guests.context,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second, // a watch has limits of its own
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	go func() {
		defer close(f.ended)
		f.err = f.http.Serve(guests)
	}()
}

// nextPatience is how long a request waits for the next process. It is below WriteTimeout.
const nextPatience = 20 * time.Second

// ServeHTTP implements [http.Handler]. Between two processes, the former process's handler answers reads from its last facts.
// Changes, which it would lose, and watches, which it could not serve, wait for the next process.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	current := f.current.Load()
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if current.next == nil || reads && !strings.HasSuffix(r.URL.Path, "/watch") {
		current.handler.ServeHTTP(w, r)
		return
	}
	timer := time.NewTimer(nextPatience)
	defer timer.Stop()
	select {
	case <-current.next:
		f.current.Load().handler.ServeHTTP(w, r)
	case <-timer.C:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "statusd is reloading its config; try again", http.StatusServiceUnavailable)
	case <-r.Context().Done():
	}
}

// Close closes the address, unless it was left to the next process.
func (f *Front) Close() error {
	if f.isLeft() {
		return nil
	}
	return f.stop()
}

// isLeft reports whether the address is the next process's. Serve may not have returned yet: it is not waited for without end.
func (f *Front) isLeft() bool {
	if f.of == nil {
		return false
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.left
}

// stop ends serving. In-flight requests are not drained.
func (f *Front) stop() error {
	f.starting.Do(func() { close(f.ended) }) // nothing will start any more
	f.stopping.Do(func() {
		if f.http == nil {
			f.stopped = f.listener.Close()
			return
		}
		f.stopped = f.http.Close()
		if <-f.ended; !errors.Is(f.err, http.ErrServerClosed) {
			f.stopped = errors.Join(f.stopped, f.err)
		}
	})
	return f.stopped
}
