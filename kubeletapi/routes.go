package kubeletapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// routes is everything that the server answers. Paths that are not the kubelet's are unknown to everyone; all
// others are behind the door.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	service := func(path string, routes ...route) {
		handler := s.door(service{strings.TrimSuffix(path, "/"), routes})
		mux.Handle(strings.TrimSuffix(path, "/")+"/", handler)
		if !strings.HasSuffix(path, "/") { // else it is redirected
			mux.Handle(path, handler)
		}
	}
	plain := func(path string, handler http.Handler) { mux.Handle(path, s.door(handler)) }

	var exec, attach, portForward, run []route
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		exec = append(exec, route{method, 3, s.serveExec}, route{method, 4, s.serveExec})
		attach = append(attach, route{method, 3, s.serveAttach}, route{method, 4, s.serveAttach})
		portForward = append(portForward, route{method, 2, s.servePortForward}, route{method, 3, s.servePortForward})
	}
	run = append(run, route{http.MethodPost, 3, s.serveRun}, route{http.MethodPost, 4, s.serveRun})
	service("/exec", exec...)
	service("/attach", attach...)
	service("/portForward", portForward...)
	service("/run", run...)
	service("/containerLogs", route{http.MethodGet, 3, s.serveLogs})
	service("/pods", route{http.MethodGet, 0, s.servePods})
	service("/runningpods/", route{http.MethodGet, 0, s.serveRunningPods})
	service("/stats/", route{http.MethodGet, 1, s.serveSummary}, route{http.MethodPost, 1, s.serveSummary})

	plain("/healthz", http.HandlerFunc(s.serveHealth))
	for _, name := range checks {
		plain("/healthz/"+name, http.HandlerFunc(s.serveHealth))
	}
	plain("/configz", http.HandlerFunc(s.serveConfig))
	plain("/metrics", gathered(s.options.Metrics))
	plain("/metrics/probes", gathered(s.options.ProbeMetrics))
	plain("/metrics/resource", http.HandlerFunc(s.serveResources))
	// What a kubelet has beside these, is hidden from clients without the rights for it.
	for _, path := range []string{"/logs/", "/checkpoint/", "/debug/pprof/", "/statusz", "/flagz", "/metrics/cadvisor", "/debug/flags/v"} {
		plain(path, http.HandlerFunc(notFound))
	}
	return mux
}

func gathered(from prometheus.Gatherer) http.Handler {
	if from == nil {
		from = prometheus.NewRegistry()
	}
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// route is a method, and a number of parameters in the path.
type route struct {
	method     string
	parameters int
	serve      func(w http.ResponseWriter, request *http.Request, parameters []string)
}

// service routes the paths below one path.
type service struct {
	path   string
	routes []route
}

func (s service) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	parameters := strings.FieldsFunc(strings.TrimPrefix(request.URL.Path, s.path), func(r rune) bool { return r == '/' })
	fits := slices.DeleteFunc(slices.Clone(s.routes), func(r route) bool { return r.parameters != len(parameters) })
	at := slices.IndexFunc(fits, func(r route) bool { return r.method == request.Method })
	switch {
	case len(fits) == 0:
		notFound(w, request)
	case at < 0:
		allow := make([]string, len(fits))
		for i, r := range fits {
			allow[i] = r.method
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		answer(w, http.StatusMethodNotAllowed, "405: Method Not Allowed")
	default:
		fits[at].serve(w, request, parameters)
	}
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusNotFound, "404: Page Not Found")
}
