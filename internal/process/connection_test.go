package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/patience"
)

const tokenKubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: %s}}]
`

// A watch that runs goes on with the credentials that it began with, and the next request has the new ones: neither it nor
// a stream or a back-off of the process ends because credentials are renewed.
func TestRenewedCredentials_EndNoRequest(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.Header.Get("Authorization"))
		if r.URL.Path == "/watch" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(host, token string) {
		if err := os.WriteFile(file, fmt.Appendf(nil, tokenKubeconfig, host, token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(server.URL, "first")
	config, err := LoadKubeconfig(file)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := NewConnection(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(connection.Clients())
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) *http.Response {
		response, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	watch := get("/watch")
	defer watch.Body.Close()
	lines := bufio.NewReader(watch.Body)
	if first, err := lines.ReadString('\n'); err != nil || first != "Bearer first\n" {
		t.Fatalf("got %q, %v", first, err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := lines.ReadByte()
		ended <- err
	}()

	reloads := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	followed, used := make(chan error, 1), KubeconfigDigest(file)
	go func() {
		followed <- Credentials{
			Kubeconfig: file, Used: used, Interval: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
			Use: connection.Use, Reload: func() { reloads <- struct{}{} },
		}.Follow(ctx)
	}()
	write(server.URL, "second")
	patient, done := patience.Context(t)
	defer done()
	for {
		response := get("/")
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if string(body) == "Bearer second\n" {
			break
		}
		if patient.Err() != nil {
			t.Fatalf("got %q, want the new token", body)
		}
	}
	select {
	case err := <-ended:
		t.Errorf("the watch has ended with %v", err)
	case <-reloads:
		t.Error("a reload was asked for")
	default:
	}
	write("https://127.0.0.1:1", "second") // another server needs another client
	<-reloads
	cancel()
	if err := <-followed; err != nil {
		t.Error(err)
	}
	watch.Body.Close()
	if err := <-ended; errors.Is(err, nil) {
		t.Error("the watch delivered more than was sent")
	}
}
