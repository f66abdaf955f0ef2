package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parameter is a query parameter of a route.
type parameter struct{ name, doc string }

// route is one path that is served. The OpenAPI document is made of the routes.
type route struct {
	// path is as in OpenAPI: {name} is a segment.
	path       string
	doc        string
	parameters []parameter
	// content is the type of the answer, an example of which is result.
	content string
	result  any
	handle  func(http.ResponseWriter, *http.Request, map[string]string)
}

// podsPath is the kubelet's: parameters that are not known are ignored there, as the kubelet does.
const podsPath = "/pods"

func (s *Server) table() []route {
	since := parameter{"since", "Go on after this revision, that of a list or of an event. Last-Event-ID does the same."}
	return []route{
		{podsPath, "The pods of the node with the statuses that it reports, as the kubelet serves them. Specs are reduced to their outline.",
			nil, "application/json", podListExample, s.servePods},
		{"/apis/v1/pods", "A summary of each pod.", []parameter{
			{"namespace", "Only pods of this namespace."},
			{"state", "Only pods in this state, such as NotReady."},
			{"gone", "true: also pods that have gone and whose history is still kept."},
		}, "application/json", PodList{}, s.serveSummaries},
		{"/apis/v1/pods/{namespace}/{name}", "Everything that is known of a pod: explanation, containers, history, delivery.",
			nil, "application/json", PodDetail{}, s.serveDetail},
		{"/apis/v1/node", "Everything that is known of the node.", nil, "application/json", NodeDetail{}, s.serveNode},
		{"/apis/v1/watch", "Changes as server-sent events: pod (PodSummary), gone (GonePod), node (NodeDetail), reset, synced; with pod, detail (PodDetail).",
			[]parameter{since, {"pod", "NAMESPACE/NAME: only this pod, with everything that is known of it."}}, "text/event-stream", nil, s.serveWatch},
		{"/openapi.json", "This document.", nil, "application/json", nil, s.serveOpenAPI},
	}
}

// serve finds the route of a request. It does so by segments of the path as it was sent, so that
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
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "path %s is not served; /openapi.json lists those that are", short(r.URL.Path))
}

func (s *Server) serveRoute(w http.ResponseWriter, r *http.Request, route *route, values map[string]string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "method %s is not served for %s: everything here is read-only", short(r.Method), route.path)
		return
	}
	if route.path != podsPath && !checkQuery(w, r, route) {
		return
	}
	route.handle(w, r, values)
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
			badRequest(w, "parameter %s is not known for %s; /openapi.json lists those that are", short(name), route.path)
			return false
		}
		if len(values) > 1 {
			badRequest(w, "parameter %s is given %d times, want once", short(name), len(values))
			return false
		}
	}
	return true
}

// match compares a path with that of a route, segment by segment.
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
