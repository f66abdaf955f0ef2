package process

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/statusd/statusd/internal/unixsocket"
)

// endpointsOf answer with a name.
func endpointsOf(name string) *Endpoints {
	return &Endpoints{Alive: func() {}, Metrics: prometheus.NewRegistry(), Query: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s: %s %s", name, r.Method, r.URL.Path)
	})}
}

// serve serves until end is called with the cause of the end.
func serve(t *testing.T, front *Front, e *Endpoints) (end func(error)) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- front.Serve(ctx, e) }()
	return func(cause error) {
		t.Helper()
		cancel(cause)
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := front.Close(); err != nil { // as the life of its process does
			t.Errorf("Close: %v", err)
		}
	}
}

func request(t *testing.T, client *http.Client, method, url string) (code int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return response.StatusCode, string(text)
}

// frontsOf listens on loopback and on a socket.
func frontsOf(t *testing.T) (listen map[string]func() *Front, clients map[string]*http.Client) {
	t.Helper()
	fronts := &Fronts{}
	t.Cleanup(func() {
		if err := fronts.Close(); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(t.TempDir(), "s.sock")
	listen = map[string]func() *Front{
		"tcp": func() *Front {
			front, err := fronts.Listen("127.0.0.1:0", "healthz-bind-address")
			if err != nil {
				t.Fatal(err)
			}
			return front
		},
		"unix": func() *Front {
			front := fronts.OpenSocket(slog.New(slog.DiscardHandler), "query", path)
			if front == nil {
				t.Fatal("the socket is not available")
			}
			return front
		},
	}
	clients = map[string]*http.Client{
		"tcp": {Transport: &http.Transport{}},
		"unix": {Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return unixsocket.Dial(ctx, path)
		}}},
	}
	t.Cleanup(func() {
		for _, client := range clients {
			client.CloseIdleConnections()
		}
	})
	return listen, clients
}

// Between two processes of one program the first answers what it knows, and is not ready. What it cannot do waits for the second.
func TestReload_EndpointsAnswerThroughout(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			listen, clients := frontsOf(t)
			client, front := clients[network], listen[network]()
			url := "http://127.0.0.1"
			if network == "tcp" {
				url = "http://" + front.Address()
			}
			end := serve(t, front, endpointsOf("first"))
			if _, body := request(t, client, http.MethodGet, url+"/apis/v1/pods"); body != "first: GET /apis/v1/pods" {
				t.Errorf("got %q", body)
			}
			end(ErrReload)
			for path, want := range map[string]string{"/healthz": "ok\n", "/livez": "ok\n", "/apis/v1/pods": "first: GET /apis/v1/pods"} {
				if code, body := request(t, client, http.MethodGet, url+path); code != http.StatusOK || body != want {
					t.Errorf("between two processes %s answers %d %q, want %q", path, code, body, want)
				}
			}
			if code, body := request(t, client, http.MethodGet, url+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "reloaded") {
				t.Errorf("between two processes /readyz answers %d %q, want that the config is being reloaded", code, body)
			}
			waiting := map[string]chan string{}
			for _, what := range []string{"POST /apis/v1/silences", "GET /apis/v1/watch"} {
				method, path, _ := strings.Cut(what, " ")
				answer := make(chan string, 1)
				waiting[what] = answer
				asked := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				if network == "unix" {
					asked.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
						return unixsocket.Dial(ctx, front.asked.address)
					}}
				}
				go func() {
					r, _ := http.NewRequestWithContext(t.Context(), method, url+path, nil)
					response, err := asked.Do(r)
					if err != nil {
						answer <- err.Error()
						return
					}
					defer response.Body.Close()
					body, _ := io.ReadAll(response.Body)
					answer <- string(body)
				}()
			}
			second := listen[network]()
			if second.Address() != front.Address() {
				t.Errorf("the second process listens at %s, want %s", second.Address(), front.Address())
			}
			end = serve(t, second, endpointsOf("second"))
			for what, answer := range waiting {
				if got := <-answer; got != "second: "+what {
					t.Errorf("got %q, want the answer of the second process to %s", got, what)
				}
			}
			if code, _ := request(t, client, http.MethodGet, url+"/readyz"); code != http.StatusOK {
				t.Errorf("the second process is not ready: %d", code)
			}
			end(context.Canceled)
			if _, err := client.Get(url + "/healthz"); err == nil {
				t.Error("the endpoints answer after the end of the last process")
			}
		})
	}
}

// What the next process does not listen at is closed before it binds what may overlap, and what no process takes is closed.
func TestReload_OtherAddressesAreClosed(t *testing.T) {
	fronts := &Fronts{}
	front, err := fronts.Listen("127.0.0.1:0", "healthz-bind-address")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, front, endpointsOf("first"))(ErrReload)
	_, port, err := net.SplitHostPort(front.Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := fronts.Keep("localhost:" + port); err != nil {
		t.Error(err)
	}
	next, err := fronts.Listen("localhost:"+port, "healthz-bind-address")
	if err != nil {
		t.Fatalf("the same port by another name: %v", err)
	}
	serve(t, next, endpointsOf("second"))(ErrReload)
	if err := fronts.Close(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", next.Address()); err == nil {
		conn.Close()
		t.Error("the address is still bound")
	}
}

// A process that does not stop in time closes its addresses while they are still served. The race detector sees an access without a lock.
func TestReload_CloseDuringServe(t *testing.T) {
	fronts := &Fronts{}
	front, err := fronts.Listen("127.0.0.1:0", "healthz-bind-address")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- front.Serve(ctx, endpointsOf("late")) }()
	cancel(ErrReload)
	if err := front.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	<-done // an error, if Close was first
	if err := fronts.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
