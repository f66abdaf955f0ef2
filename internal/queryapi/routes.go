package queryapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/localhost"
	"github.com/statusd/statusd/internal/machine/load"
	"github.com/statusd/statusd/internal/view"
)

// parameter is a query parameter of a route.
type parameter struct{ name, doc string }

// route is one path that is served. The OpenAPI document is made of the routes.
type route struct {
	// path is as in OpenAPI: {name} is a segment.
	path       string
	doc        string
	parameters []parameter
	// content is the type of the answer; result is an example of the answer.
	content string
	result  any
	handle  handler
	// writes are the other methods of the path. They are served on the Unix socket only.
	writes []write
	// unread: there is no GET.
	unread bool
}

type handler = func(http.ResponseWriter, *http.Request, map[string]string)

// write is a method that changes something.
type write struct {
	method, doc string
	// body is an example of the request's body, nil without one; result of the answer's.
	body, result any
	handle       handler
}

// podsPath is the kubelet's: parameters that are not known are ignored there, as the kubelet does.
const podsPath = "/pods"

func (s *Server) table() []route {
	since := parameter{"since", "Go on after this revision of a list or of an event. Last-Event-ID does the same."}
	json := func(path, doc string, result any, handle handler, parameters ...parameter) route {
		return route{path: path, doc: doc, parameters: parameters, content: "application/json", result: result, handle: handle}
	}
	silences := json("/apis/v1/silences", "Silences: which alerts are kept from the outputs, and until when.", SilenceList{}, s.serveSilences)
	silences.writes = []write{{http.MethodPost, "Keep the alerts that match from the outputs, until a time.", alert.Silence{}, alert.Silence{}, s.addSilence}}
	silence := route{path: "/apis/v1/silences/{id}", unread: true, writes: []write{{http.MethodDelete, "End a silence.", nil, statusExample, s.expireSilence}}}
	return []route{
		json(podsPath, "The pods of the node with the statuses that it reports, as the kubelet serves them. Specs are reduced to their outline.",
			podListExample, s.servePods),
		json("/apis/v1/pods", "A summary of each pod.", view.PodList{}, s.serveSummaries,
			parameter{"namespace", "Only pods of this namespace."},
			parameter{"state", "Only pods in this state, such as NotReady."},
			parameter{"gone", "true: also deleted pods whose history is still kept."}),
		json("/apis/v1/pods/{namespace}/{name}", "Everything that is known of a pod: explanation, containers, history, delivery, differences, alerts.",
			view.PodDetail{}, s.serveDetail),
		json("/apis/v1/pods/{namespace}/{name}/log", "The end of the log of a container, without control characters and without what looks like a secret.", view.ContainerLog{}, s.serveLog,
			parameter{"container", "Name of the container, required."},
			parameter{"previous", "true: the run before the current one."}),
		json("/apis/v1/node", "Everything that is known of the node.", view.NodeDetail{}, s.serveNode),
		json("/apis/v1/audit", "Whether what the API reports of this node is true: the sides that were asked, and where they differ.", audit.Report{}, s.serveAudit),
		json("/apis/v1/guard", "How healthy the kubelet is, by which evidence, and when it was restarted.", guard.Report{}, s.serveGuard),
		{path: "/apis/v1/guard/maintenance", unread: true, writes: []write{{http.MethodPost,
			"Keep the guard from restarting anything until a time; a time in the past ends the maintenance.", Maintenance{}, guard.Report{}, s.setMaintenance}}},
		json("/apis/v1/load", "How much of its resources the node uses, and its pods.", load.Load{}, s.serveLoad),
		json("/apis/v1/alerts", "The alerts that are pending, fire or have fired.", AlertList{}, s.serveAlerts),
		silences,
		silence,
		{path: "/apis/v1/watch", doc: "Changes as server-sent events: pod (PodSummary), gone (GonePod), node (NodeDetail), reset, synced; with pod, detail (PodDetail).",
			parameters: []parameter{since, {"pod", "NAMESPACE/NAME: only this pod, with everything that is known of it."}}, content: "text/event-stream", handle: s.serveWatch},
		json("/openapi.json", "This document.", nil, s.serveOpenAPI),
	}
}

// serve finds the route of a request. serve does so by segments of the path as it was sent, so that
// no encoded slash or dot is taken for a separator and nothing is redirected.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	for i := range s.routes {
		if values, ok := match(s.routes[i].path, path); ok {
			s.serveRoute(w, r, &s.routes[i], values)
			return
		}
	}
	if s.options.Page != nil && path != "/apis" && !strings.HasPrefix(path, "/apis/") {
		s.options.Page.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "path %s is not served; /openapi.json lists all", localhost.Short(r.URL.Path))
}

func (s *Server) serveRoute(w http.ResponseWriter, r *http.Request, route *route, values map[string]string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	handle := route.handler(r.Method)
	if handle == nil {
		w.Header().Set("Allow", strings.Join(route.methods(), ", "))
		fail(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "method %s is not served for %s, want %s", localhost.Short(r.Method), route.path, strings.Join(route.methods(), " or "))
		return
	}
	if route.path != podsPath && !checkQuery(w, r, route) {
		return
	}
	handle(w, r, values)
}

// handler is what serves a method, nil if nothing does.
func (r *route) handler(method string) handler {
	if !r.unread && (method == http.MethodGet || method == http.MethodHead) {
		return r.handle
	}
	for _, write := range r.writes {
		if write.method == method {
			return onlyOnSocket(write.handle)
		}
	}
	return nil
}

func (r *route) methods() (list []string) {
	if !r.unread {
		list = append(list, http.MethodGet, http.MethodHead)
	}
	for _, write := range r.writes {
		list = append(list, write.method)
	}
	return list
}

// checkQuery reports whether each parameter is known and given once.
func checkQuery(w http.ResponseWriter, r *http.Request, route *route) bool {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		badRequest(w, "query: %v", err)
		return false
	}
	for name, values := range query {
		if !slices.ContainsFunc(route.parameters, func(p parameter) bool { return p.name == name }) {
			badRequest(w, "parameter %s is not known for %s; /openapi.json lists all", localhost.Short(name), route.path)
			return false
		}
		if len(values) > 1 {
			badRequest(w, "parameter %s is given %d times, want once", localhost.Short(name), len(values))
			return false
		}
	}
	return true
}

// match compares a path with the path of a route, segment by segment.
func match(pattern, path string) (map[string]string, bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	values := map[string]string{}
	for i, segment := range want {
		value, err := url.PathUnescape(got[i])
		if err != nil {
			return nil, false
		}
		if strings.HasPrefix(segment, "{") {
			values[strings.Trim(segment, "{}")] = value
		} else if segment != value {
			return nil, false
		}
	}
	return values, true
}
