package queryapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzHandlers: whatever is asked, the answer is JSON of the right kind, a watch ends with its
// client, and nothing that containers are given gets out.
func FuzzHandlers(f *testing.F) {
	for _, c := range requests {
		path, query, _ := strings.Cut(c.target, "?")
		f.Add(c.method, path, query, c.header.Get("Last-Event-ID"), "localhost")
	}
	for _, path := range []string{"/apis/v1/watch", "/apis/v1/pods/../pods", "//apis//v1//pods", "/apis/v1/pods/default/web/", "/apis/v1/pods/%00/x",
		"/apis/v1/pods/" + strings.Repeat("a", 5000) + "/b", "/", "", "*", "/apis/v1/pods/default/web%2f..", "/%61pis/v1/node", "/apis/v1/pods/\u202edefault/x"} {
		f.Add("GET", path, "", "", "127.0.0.1:1")
		f.Add("DELETE", path, "since=e1-1&pod=default/web", "e1-0", "[::1]:80")
	}
	f.Add("GET", "/apis/v1/watch", "since=e1-18446744073709551615", "e1-18446744073709551616", "localhost:x")
	f.Add("GET", "/apis/v1/watch", strings.Repeat("a=b&", 3000), strings.Repeat("9", 3000), strings.Repeat("h", 3000))
	server, err := newFuzzServer()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, query, last, host string) {
		r := request(method, "/", http.Header{"Last-Event-Id": {last}})
		r.URL.Path, r.URL.RawQuery, r.Host = path, query, host
		if unescaped, err := r.URL.Parse(path); err == nil && unescaped.Host == "" {
			r.URL.Path, r.URL.RawPath = unescaped.Path, unescaped.RawPath
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a watch ends after what there is
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r.WithContext(ctx))
		body := answer.Body.String()
		if strings.Contains(body, "hunter2") {
			t.Errorf("the answer has what containers are given: %s", body)
		}
		if strings.HasPrefix(answer.Header().Get("Content-Type"), "text/event-stream") {
			return
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(body), &object); err != nil {
			t.Fatalf("%d: the answer is no JSON: %v: %q", answer.Code, err, body)
		}
		if answer.Code != http.StatusOK {
			var status metav1.Status
			if err := json.Unmarshal([]byte(body), &status); err != nil || status.Kind != "Status" || int(status.Code) != answer.Code || status.Reason == "" || status.Message == "" {
				t.Errorf("%d is answered with %s, want a Status", answer.Code, body)
			}
			if len(body) > 4096 {
				t.Errorf("an error of %d bytes repeats too much of the request", len(body))
			}
		}
	})
}
