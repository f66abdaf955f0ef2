package process

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/statusd/statusd/internal/localhost"
)

// A Check is one thing that must be true of a process that does its work.
type Check struct {
	Name string
	Err  func() error
}

// Endpoints serve a local supervisor, a scraper and users of this machine.
type Endpoints struct {
	// Alive returns if the process is not stuck.
	Alive func()
	// Ready are the checks of /readyz.
	Ready   []Check
	Metrics prometheus.Gatherer
	// Pending is served at /debug/pending.
	Pending func() any
	// Overview is served at /overview and names no pod; nil: not served.
	Overview func() any
	// Query serves all other paths; nil: not found.
	Query http.Handler
}

// Handler compares whole paths: nothing is cleaned or redirected.
func (e *Endpoints) Handler() http.Handler {
	own := map[string]http.Handler{
		"/livez":   http.HandlerFunc(e.livez),
		"/healthz": http.HandlerFunc(e.livez), // the older name of the same question
		"/readyz":  http.HandlerFunc(e.readyz),
		"/metrics": promhttp.HandlerFor(e.Metrics, promhttp.HandlerOpts{}),
		"/debug/pending": localhost.Only(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			serveJSON(w, e.Pending())
		}), func(w http.ResponseWriter, why string) { http.Error(w, why, http.StatusForbidden) }),
	}
	if e.Overview != nil {
		own["/overview"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { serveJSON(w, e.Overview()) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, ok := own[r.URL.Path]
		switch {
		case ok && r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "read-only", http.StatusMethodNotAllowed)
		case ok:
			handler.ServeHTTP(w, r)
		case e.Query != nil && strings.HasSuffix(r.URL.Path, "/watch"):
			staying(w, r, e.Query)
		case e.Query != nil:
			e.Query.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// livez answers as long as the process is not stuck. Whether the API server can be reached
// does not matter: to restart the process would not bring it back.
func (e *Endpoints) livez(w http.ResponseWriter, _ *http.Request) {
	e.Alive()
	fmt.Fprintln(w, "ok")
}

// readyz answers whether the process does all of its work; ?verbose names each check, and
// ?exclude=NAME leaves one out.
func (e *Endpoints) readyz(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	var report strings.Builder
	failed := false
	for _, c := range e.Ready {
		if slices.Contains(query["exclude"], c.Name) {
			fmt.Fprintf(&report, "[+]%s excluded\n", c.Name)
			continue
		}
		if err := c.Err(); err != nil {
			failed = true
			fmt.Fprintf(&report, "[-]%s failed: %v\n", c.Name, err)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", c.Name)
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
