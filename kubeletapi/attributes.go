package kubeletapi

import (
	"net/http"
	"strings"
)

// Attributes are what a request asks for, in the terms of authorization: a verb on a subresource of
// this Node.
type Attributes struct {
	// Verb is that of the API for the method of the request. Methods that have none, such as HEAD,
	// have an empty one, which no rule but one with "*" grants.
	Verb string
	// Subresources are alternatives: to be allowed one of them is enough. They are asked for in this
	// order.
	Subresources []string
}

var verbs = map[string]string{
	http.MethodPost:   "create",
	http.MethodGet:    "get",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

// subresources by path, the first match wins. What is not listed, with all that runs commands or
// reads logs of containers, is nodes/proxy.
var subresources = []struct {
	path  string
	names []string
}{
	{"/pods", []string{"pods", "proxy"}},
	{"/healthz", []string{"healthz", "proxy"}},
	{"/configz", []string{"configz", "proxy"}},
	{"/runningpods", []string{"pods", "proxy"}},
	{"/stats", []string{"stats"}},
	{"/metrics", []string{"metrics"}},
	{"/logs", []string{"log"}},
	{"/checkpoint", []string{"checkpoint"}},
	{"/statusz", []string{"statusz"}},
	{"/flagz", []string{"configz"}},
}

// AttributesOf maps a method and a path as the kubelet does, with the fine-grained subresources.
func AttributesOf(method, path string) Attributes {
	for _, s := range subresources {
		if path == s.path || strings.HasPrefix(path, s.path+"/") {
			return Attributes{Verb: verbs[method], Subresources: s.names}
		}
	}
	return Attributes{Verb: verbs[method], Subresources: []string{"proxy"}}
}
