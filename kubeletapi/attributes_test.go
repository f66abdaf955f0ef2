package kubeletapi

import (
	"slices"
	"testing"
)

func TestPathsAndMethodsAskForTheVerbsAndSubresourcesOfTheKubelet(t *testing.T) {
	for _, c := range []struct {
		method, path, verb string
		subresources       []string
	}{
		{"GET", "/pods", "get", []string{"pods", "proxy"}},
		{"GET", "/pods/", "get", []string{"pods", "proxy"}},
		{"GET", "/podsy", "get", []string{"proxy"}},
		{"GET", "/runningpods/", "get", []string{"pods", "proxy"}},
		{"GET", "/runningpods", "get", []string{"pods", "proxy"}},
		{"GET", "/healthz", "get", []string{"healthz", "proxy"}},
		{"GET", "/healthz/syncloop", "get", []string{"healthz", "proxy"}},
		{"GET", "/configz", "get", []string{"configz", "proxy"}},
		{"GET", "/flagz", "get", []string{"configz"}},
		{"GET", "/statusz", "get", []string{"statusz"}},
		{"GET", "/stats", "get", []string{"stats"}},
		{"GET", "/stats/summary", "get", []string{"stats"}},
		{"POST", "/stats/summary", "create", []string{"stats"}},
		{"GET", "/metrics", "get", []string{"metrics"}},
		{"GET", "/metrics/resource", "get", []string{"metrics"}},
		{"GET", "/metrics/probes", "get", []string{"metrics"}},
		{"GET", "/logs/", "get", []string{"log"}},
		{"POST", "/checkpoint/ns/pod/c", "create", []string{"checkpoint"}},
		{"GET", "/containerLogs/ns/pod/c", "get", []string{"proxy"}},
		{"GET", "/exec/ns/pod/c", "get", []string{"proxy"}},
		{"POST", "/exec/ns/pod/c", "create", []string{"proxy"}},
		{"POST", "/attach/ns/pod/c", "create", []string{"proxy"}},
		{"POST", "/portForward/ns/pod", "create", []string{"proxy"}},
		{"POST", "/run/ns/pod/c", "create", []string{"proxy"}},
		{"PUT", "/pods", "update", []string{"pods", "proxy"}},
		{"PATCH", "/x", "patch", []string{"proxy"}},
		{"DELETE", "/x", "delete", []string{"proxy"}},
		{"HEAD", "/pods", "", []string{"pods", "proxy"}},
		{"BREW", "/pods", "", []string{"pods", "proxy"}},
		{"GET", "", "get", []string{"proxy"}},
		// Rights for metrics must not open another path by its spelling.
		{"GET", "/metrics/../exec/ns/pod/c", "get", []string{"metrics"}}, // redirected before it is served
		{"GET", "//metrics", "get", []string{"proxy"}},
		{"GET", "/Metrics", "get", []string{"proxy"}},
	} {
		got := AttributesOf(c.method, c.path)
		if got.Verb != c.verb || !slices.Equal(got.Subresources, c.subresources) {
			t.Errorf("%s %s: got %v, want %s %v", c.method, c.path, got, c.verb, c.subresources)
		}
	}
}
