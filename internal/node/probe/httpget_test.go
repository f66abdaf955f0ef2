package probe

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func httpGet(action v1.HTTPGetAction) question {
	return question{handler: &v1.ProbeHandler{HTTPGet: &action}}
}

// serve starts a server for the test. A request for /CODE is answered with that code.
func serve(t *testing.T, tls bool) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		if _, err := fmt.Sscan(r.PathValue("code"), &code); err != nil {
			t.Errorf("a request for %s", r.URL)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, "secret ", r.Proto)
	})
	to := func(url string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusFound) }
	}
	mux.HandleFunc("/to/here", to("/200"))
	mux.HandleFunc("/to/broken", to("/500"))
	mux.HandleFunc("/to/itself", to("/to/itself"))
	mux.HandleFunc("/to/elsewhere", to("http://example.invalid/"))
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Repeat("x", 2*maxBodyBytes))
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "less")
	})
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if tls {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

func TestHTTPGet(t *testing.T) {
	port := portOf(t, serve(t, false).Listener.Addr().String())
	for _, c := range []struct {
		path   string
		result result
		part   string
	}{
		{"/200", success, "secret"},
		{"/204", success, ""},
		{"/304", success, "Probe terminated redirects, Response body: "},
		{"200", success, "secret"},
		{"/400", failure, "HTTP probe failed with statuscode: 400"},
		{"/404", failure, "HTTP probe failed with statuscode: 404"},
		{"/503", failure, "HTTP probe failed with statuscode: 503"},
		{"/to/here", success, "secret"},
		{"/to/broken", failure, "HTTP probe failed with statuscode: 500"},
		{"/to/itself", failure, "stopped after 10 redirects"},
		{"/to/elsewhere", success, "Probe terminated redirects, Response body: "},
		{"/large", success, "xxx"},
		{"/cut", failure, "reading the response body"},
	} {
		got := put(t, realChecker(), httpGet(v1.HTTPGetAction{Path: c.path, Port: port}))
		want(t, c.path, got, c.result, c.part)
		if got.result == failure && strings.Contains(got.message, "secret") {
			t.Errorf("%s: the message repeats the body: %q", c.path, got.message)
		}
		if len(got.message) > maxBodyBytes {
			t.Errorf("%s: the message has %d bytes, want no more than %d", c.path, len(got.message), maxBodyBytes)
		}
		if redirected := strings.HasPrefix(got.message, "Probe terminated"); got.warning != redirected {
			t.Errorf("%s: got warning=%v, want it for redirects that were not followed only", c.path, got.warning)
		}
	}
}

func TestHTTPGetThatGetsNoAnswer(t *testing.T) {
	closed := intstr.FromInt32(int32(closedPort(t)))
	want(t, "closed port", put(t, realChecker(), httpGet(v1.HTTPGetAction{Path: "/200", Port: closed})), failure, "connection refused")
	want(t, "unknown port", put(t, realChecker(), httpGet(v1.HTTPGetAction{Port: intstr.FromString("x")})), unknown, `port "x"`)

	hangs := httpGet(v1.HTTPGetAction{Path: "/hangs", Port: portOf(t, serve(t, false).Listener.Addr().String())})
	hangs.timeout = 50 * time.Millisecond
	want(t, "server that hangs", put(t, realChecker(), hangs), failure, "Client.Timeout exceeded")
}

func TestHTTPGetTakesAnyCertificate(t *testing.T) {
	port := portOf(t, serve(t, true).Listener.Addr().String())
	https := httpGet(v1.HTTPGetAction{Path: "/200", Port: port, Scheme: v1.URISchemeHTTPS})
	want(t, "self-signed, HTTP/2", put(t, realChecker(), https), success, "HTTP/2")
	plain := httpGet(v1.HTTPGetAction{Path: "/200", Port: port})
	want(t, "HTTP to a port for HTTPS", put(t, realChecker(), plain), failure, "400")
}

func TestHTTPGetSendsWhatTheSpecSays(t *testing.T) {
	requests := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requests <- r }))
	defer server.Close()
	container := &v1.Container{Ports: []v1.ContainerPort{{Name: "web", ContainerPort: portOf(t, server.Listener.Addr().String()).IntVal}}}
	ask := func(headers ...v1.HTTPHeader) *http.Request {
		t.Helper()
		q := httpGet(v1.HTTPGetAction{Path: "/a?b=c", Port: intstr.FromString("web"), HTTPHeaders: headers})
		q.container = container
		want(t, "request", put(t, realChecker(), q), success, "")
		return <-requests
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	got := ask()
	expect("request", got.Method+" "+got.URL.String(), "GET /a?b=c")
	expect("Host", got.Host, server.Listener.Addr().String())
	expect("User-Agent", got.UserAgent(), "statusd-probe/v1.2.3")
	expect("Accept", got.Header.Get("Accept"), "*/*")
	expect("Accept-Encoding", got.Header.Get("Accept-Encoding"), "")
	expect("Connection", got.Header.Get("Connection"), "close")

	got = ask(v1.HTTPHeader{Name: "host", Value: "example.invalid"}, v1.HTTPHeader{Name: "User-Agent", Value: "me"},
		v1.HTTPHeader{Name: "Accept", Value: ""}, v1.HTTPHeader{Name: "X-A", Value: "1"}, v1.HTTPHeader{Name: "X-A", Value: "2"})
	expect("Host", got.Host, "example.invalid")
	expect("User-Agent", got.UserAgent(), "me")
	expect("Accept", strings.Join(got.Header.Values("Accept"), ","), "")
	expect("X-A", strings.Join(got.Header.Values("X-A"), ","), "1,2")
}
