package kubeletapi

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/statusd/statusd/internal/node/inside"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/test/doors"
	"github.com/statusd/statusd/test/testlog"
)

// answering replaces all that a server does behind its connections.
func answering(s *nodeServer, handler http.HandlerFunc) { s.server.handler = handler }

// A reload leaves connections and requests to the next server: what has begun goes on with the server that began it, a new request
// is answered by the next one, over the same listener and with its certificate. A stop after that ends all of them.
func TestReload_LeavesClientsToTheNextServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := servingAt(t, listener)
	first := forNode(t, serving)
	began, release := make(chan struct{}), make(chan struct{})
	answering(first, func(w http.ResponseWriter, request *http.Request) {
		close(began)
		select {
		case <-release:
			_, _ = io.WriteString(w, "of the first")
		case <-request.Context().Done():
			panic(http.ErrAbortHandler)
		}
	})
	reload := runServer(t, first)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	get := func() (string, error) {
		response, err := (&http.Client{Transport: transport}).Get("https://" + listener.Addr().String() + "/")
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	type answer struct {
		text string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		text, err := get()
		answered <- answer{text, err}
	}()
	<-began
	if err := reload(process.ErrReload); err != nil {
		t.Fatal(err)
	}
	serving.Former = first
	second := forNode(t, serving)
	answering(second, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/" {
			_, _ = io.WriteString(w, "of the second")
		}
	})
	stop := runServer(t, second)
	if text, err := get(); text != "of the second" || err != nil {
		t.Errorf("got %q, %v; want the answer of the second server", text, err)
	}
	close(release)
	if got := <-answered; got.text != "of the first" || got.err != nil {
		t.Errorf("got %q, %v; want that a request ends with the server that began it", got.text, got.err)
	}
	if err := stop(errors.New("stop")); err != nil {
		t.Error(err)
	}
	if text, err := get(); err == nil {
		t.Errorf("after the stop: got %q", text)
	}
}

// What a reload has left, and no server has taken over, ends with Close: requests end with an error.
func TestReload_WithoutANextServer_EndsRequestsWithAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := forNode(t, servingAt(t, listener))
	began := make(chan struct{})
	answering(s, func(_ http.ResponseWriter, request *http.Request) {
		close(began)
		<-request.Context().Done()
		panic(http.ErrAbortHandler)
	})
	reload := runServer(t, s)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	answered := make(chan error, 1)
	go func() {
		response, err := (&http.Client{Transport: transport}).Get("https://" + listener.Addr().String() + "/")
		if err == nil {
			response.Body.Close()
		}
		answered <- err
	}()
	<-began
	if err := reload(process.ErrReload); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-answered; err == nil {
		t.Error("a request that was cut ended without an error")
	}
}

// servingAt is what a node without an API server serves.
func servingAt(t *testing.T, listener net.Listener) inside.Serving {
	t.Helper()
	authority, err := doors.NewAuthority(pkix.Name{CommonName: "authority"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return inside.Serving{
		NodeName: "node", Listener: listener, Pods: noPods{}, Runtime: runtimefake.New(), ClientCAFile: file, Directory: t.TempDir(),
		Addresses: func() []string { return []string{"127.0.0.1"} }, Logger: testlog.New(t),
	}
}

type noPods struct{ inside.Pods }

func forNode(t *testing.T, n inside.Serving) *nodeServer {
	t.Helper()
	s, err := ForNode(n)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*nodeServer)
}

// runServer runs the server and returns what ends it, for a reason.
func runServer(t *testing.T, s *nodeServer) (end func(why error) error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	parts := s.Parts()
	go func() { ended <- parts[len(parts)-1].Run(ctx) }()
	t.Cleanup(func() { cancel(nil) })
	for s.server.front.current.Load() != s.server {
		runtime.Gosched()
	}
	return func(why error) error {
		cancel(why)
		return <-ended
	}
}
