package kubeletapi

import (
	"net/http"
	"strings"
)

// Attributes are the authorization attributes of a request: a verb on a subresource of this Node.
type Attributes struct {
	// Verb is the API verb for the method of the request. HEAD and other methods without a verb map
	// to the empty verb, which only rules with verb "*" allow.
	Verb string
	// Subresources are alternatives: access to one of them is enough. They are checked in this
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

// AttributesOf maps a method and a path to Attributes as the kubelet does, with the fine-grained
// subresources.
func AttributesOf(method, path string) Attributes {
	for _, s := range subresources {
		if path == s.path || strings.HasPrefix(path, s.path+"/") {
			return Attributes{Verb: verbs[method], Subresources: s.names}
		}
	}
	return Attributes{Verb: verbs[method], Subresources: []string{"proxy"}}
}
