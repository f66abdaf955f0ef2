package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/statusd/statusd/api"
)

// maxConnections bounds what the endpoints take of the process's file descriptors: every local
// user can connect. Those beyond it wait.
const maxConnections = 128

// A check is one thing that must be true of an agent that does its work.
type check struct {
	name string
	err  func() error
}

// endpoints serves what a local supervisor, a scraper and users of this machine want to know.
type endpoints struct {
	// alive returns if the agent is not stuck.
	alive func()
	// ready are the checks of /readyz.
	ready   []check
	metrics *prometheus.Registry
	// pending is what /debug/pending shows.
	pending func() any
	// query serves all other paths; nil: there are none.
	query http.Handler
}

// handler compares whole paths: nothing is cleaned or redirected.
func (e *endpoints) handler() http.Handler {
	own := map[string]http.Handler{
		"/livez":   http.HandlerFunc(e.livez),
		"/healthz": http.HandlerFunc(e.livez), // the older name of the same question
		"/readyz":  http.HandlerFunc(e.readyz),
		"/metrics": promhttp.HandlerFor(e.metrics, promhttp.HandlerOpts{}),
		"/debug/pending": api.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			serveJSON(w, e.pending())
		})),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, ok := own[r.URL.Path]
		switch {
		case ok && r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "read-only", http.StatusMethodNotAllowed)
		case ok:
			handler.ServeHTTP(w, r)
		case e.query != nil:
			e.query.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// livez answers as long as the agent is not stuck. Whether the API server can be reached
// does not matter: to restart the agent would not bring it back.
func (e *endpoints) livez(w http.ResponseWriter, _ *http.Request) {
	e.alive()
	fmt.Fprintln(w, "ok")
}

// readyz answers whether the agent does all of its work; ?verbose names each check, and
// ?exclude=NAME leaves one out.
func (e *endpoints) readyz(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	var report strings.Builder
	failed := false
	for _, c := range e.ready {
		if slices.Contains(query["exclude"], c.name) {
			fmt.Fprintf(&report, "[+]%s excluded\n", c.name)
			continue
		}
		if err := c.err(); err != nil {
			failed = true
			fmt.Fprintf(&report, "[-]%s failed: %v\n", c.name, err)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", c.name)
	}
	switch {
	case failed:
		http.Error(w, report.String()+"readyz check failed", http.StatusServiceUnavailable)
	case query.Has("verbose"):
		fmt.Fprint(w, report.String(), "readyz check passed\n")
	default:
		fmt.Fprintln(w, "ok")
	}
}

func serveJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	// The one error there can be is that the reader has gone away.
	_ = json.NewEncoder(w).Encode(value)
}

// serve serves on a listener until ctx ends.
func (e *endpoints) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           e.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second, // a watch has limits of its own
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(netutil.LimitListener(listener, maxConnections)) }()
	select {
	case err := <-served:
		return fmt.Errorf("agent: serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	// In-flight requests are not drained.
	err := server.Close()
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
