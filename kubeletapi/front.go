package kubeletapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// front has the listener and the connections of clients. Servers that follow each other in one process, as at a reload, share
// it: each request is answered by the server that is the current one when the request comes, to its end.
type front struct {
	connections *connections
	requests    calls
	current     atomic.Pointer[Server]

	starting sync.Once
	stopping sync.Once
	ended    chan struct{}           // closed when nothing more is accepted
	end      context.CancelCauseFunc // of all requests; set when it has started
	http     *http.Server            // set when it has started
	err      error                   // of http, before ended is closed; then of stop
}

func newFront(listener net.Listener) *front {
	return &front{connections: newConnections(listener), ended: make(chan struct{})}
}

// serve has requests answered by a server from now on. The first one starts the front, which goes on until stop.
func (f *front) serve(s *Server) {
	f.current.Store(s)
	f.starting.Do(f.start)
}

func (f *front) start() {
	var requests context.Context
	requests, f.end = context.WithCancelCause(context.Background())
	f.http = &http.Server{
		Handler: f,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return f.current.Load().tlsConfig(), nil
			},
			NextProtos: protocols,
		},
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       f.connections.context,
		ErrorLog:          slog.NewLogLogger(f.current.Load().log.Handler(), slog.LevelDebug), // clients cause these as they like
	}
	go func() {
		defer close(f.ended)
		f.err = f.http.ServeTLS(f.connections, "", "")
	}()
}

// ServeHTTP implements [http.Handler]. Requests are counted, so that stop can wait for them: net/http does not wait for
// requests with hijacked connections.
func (f *front) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if !f.requests.begin() {
		panic(http.ErrAbortHandler) // an answer without content would be one of success
	}
	defer f.requests.end()
	f.current.Load().handler.ServeHTTP(w, request)
}

// stop ends the commands that clients have started, writes to the clients that it has, closes all connections, and returns once
// all of that is over. stop may be called several times, and without serve.
func (f *front) stop() error {
	f.starting.Do(func() { close(f.ended) }) // nothing will start any more
	f.stopping.Do(func() {
		select {
		case <-f.ended:
			if f.err != nil {
				f.err = fmt.Errorf("server: serve %s: %w", f.connections.Addr(), f.err)
			}
		default:
			f.err = f.stopServing()
		}
		_ = f.connections.Listener.Close() // closed, but for a front that has not started
		if f.end != nil {
			f.end(errStopping)
		}
		f.connections.closeAll()
		f.requests.finish()
	})
	return f.err
}

func (f *front) stopServing() error {
	_ = f.connections.Listener.Close() // no request begins any more
	f.end(errStopping)
	f.requests.finishWithin(stopPatience)
	err := f.http.Close()
	if <-f.ended; !errors.Is(f.err, http.ErrServerClosed) && !errors.Is(f.err, net.ErrClosed) {
		err = errors.Join(err, f.err)
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
