package web_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/web"
)

func get(t *testing.T, method, path string, header http.Header) *http.Response {
	t.Helper()
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(method, path, nil)
	request.Header = header
	web.Handler().ServeHTTP(recorder, request)
	return recorder.Result()
}

func TestHandlerServesEachFileWithThePolicy(t *testing.T) {
	paths := []string{"/"}
	err := fs.WalkDir(os.DirFS("page"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, "/"+name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		response := get(t, http.MethodGet, path, http.Header{})
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, response.Status)
		}
		policy := response.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", path, policy)
		}
		if response.Header.Get("Content-Type") == "" || response.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: the headers are %v", path, response.Header)
		}
		tag := response.Header.Get("ETag")
		if again := get(t, http.MethodGet, path, http.Header{"If-None-Match": {tag}}); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: a browser that has %s gets %s, want 304", path, tag, again.Status)
		}
	}
}

func TestHandlerServesNothingElse(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/nothing", http.StatusNotFound},
		{http.MethodGet, "/page/index.html", http.StatusNotFound},
		{http.MethodGet, "/../web.go", http.StatusNotFound},
		{http.MethodPost, "/", http.StatusMethodNotAllowed},
		{http.MethodHead, "/", http.StatusOK},
	} {
		if response := get(t, c.method, c.path, http.Header{}); response.StatusCode != c.want {
			t.Errorf("%s %s: %s, want %d", c.method, c.path, response.Status, c.want)
		} else if c.want >= 400 {
			var status metav1.Status
			if err := json.NewDecoder(response.Body).Decode(&status); err != nil || status.Kind != "Status" || int(status.Code) != c.want || status.Message == "" {
				t.Errorf("%s %s: got %+v, %v, want a Status", c.method, c.path, status, err)
			}
		}
	}
}
