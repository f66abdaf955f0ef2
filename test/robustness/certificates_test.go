package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/robustness/gateway"
	"github.com/statusd/statusd/test/robustness/record"
)

// A client whose certificate has expired is answered 401, one that meets an expired certificate does not connect, and both go on with a renewed one.
func TestAuthority(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer server.Close()
	link, err := newAuthority(filepath.Join(t.TempDir(), "agent.pem"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(&rest.Config{Host: server.URL}, record.NewWriter(io.Discard), link.pool())
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(g)
	front.TLS = link.config()
	front.StartTLS()
	defer front.Close()
	get := func() (code int, err error) {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(link.path, link.path)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: link.pool(), Certificates: []tls.Certificate{pair}}}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get(front.URL + "/api/v1/pods")
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		return response.StatusCode, nil
	}
	want := func(story string, want int) {
		t.Helper()
		if code, err := get(); err != nil || code != want {
			t.Errorf("%s: got %d and error %v, want %d", story, code, err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want("both valid", http.StatusOK)
	must(link.renewClient(-time.Second))
	want("the client's expired", http.StatusUnauthorized)
	must(link.renewClient(longValid))
	want("the client's renewed", http.StatusOK)
	must(link.renewServer(-time.Hour))
	if _, err := get(); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("the server's expired: got error %v", err)
	}
	must(link.renewServer(longValid))
	want("the server's renewed", http.StatusOK)
}
