package process

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestReadyzNamesItsChecks(t *testing.T) {
	e := &Endpoints{Alive: func() {}, Metrics: prometheus.NewRegistry(), Ready: []Check{
		{"manifests", func() error { return nil }},
		{"api", func() error { return errors.New("connection refused") }},
	}}
	cases := []struct {
		path string
		code int
		body string
	}{
		{"/livez", http.StatusOK, "ok\n"},
		{"/healthz", http.StatusOK, "ok\n"},
		{"/readyz", http.StatusServiceUnavailable, "[+]manifests ok\n[-]api failed: connection refused\nreadyz check failed\n"},
		{"/readyz?exclude=api", http.StatusOK, "ok\n"},
		{"/readyz?exclude=api&verbose", http.StatusOK, "[+]manifests ok\n[+]api excluded\nreadyz check passed\n"},
		{"/nowhere", http.StatusNotFound, "404 page not found\n"}, // without a query API
	}
	for _, c := range cases {
		answer := httptest.NewRecorder()
		e.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, c.path, nil))
		if answer.Code != c.code || answer.Body.String() != c.body {
			t.Errorf("%s answers %d %q, want %d %q", c.path, answer.Code, answer.Body, c.code, c.body)
		}
	}
}
