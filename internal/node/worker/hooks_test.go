package worker

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/status"
)

// reporter is the manager with what it keeps of resizes.
type reporter struct {
	*status.Manager
	*status.Resizes
}

func hookWorkers(t *testing.T) *Workers {
	t.Helper()
	manager, err := status.New(status.Options{Pods: pods.New(), Journal: journal.NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Options{Runtime: runtimefake.New(), Status: reporter{manager, manager.Resizes()}, Version: "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestHTTPHooks(t *testing.T) {
	var seen *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		w.WriteHeader(http.StatusInternalServerError) // any answer is good
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	container := &v1.Container{Name: "main", Ports: []v1.ContainerPort{{Name: "admin", ContainerPort: int32(port)}}}
	get := &v1.HTTPGetAction{
		Host: "127.0.0.1", Port: intstr.FromString("admin"), Path: "/drain?fast=1",
		HTTPHeaders: []v1.HTTPHeader{{Name: "X-Why", Value: "end"}, {Name: "Host", Value: "web.example"}},
	}
	call := &hookCall{container: container, handler: &v1.LifecycleHandler{HTTPGet: get}}
	if err := hookWorkers(t).run(t.Context(), call); err != nil {
		t.Fatalf("hook: %v", err)
	}
	if seen.URL.String() != "/drain?fast=1" || seen.Header.Get("X-Why") != "end" || seen.Host != "web.example" {
		t.Errorf("got %s with %v for %s, want the path, the header and the host of the hook", seen.URL, seen.Header, seen.Host)
	}
	if got := seen.UserAgent() + " " + seen.Header.Get("Accept"); got != "statusd-lifecycle/v1.2.3 */*" {
		t.Errorf("got User-Agent and Accept %q, want those of the kubelet's hooks with our name", got)
	}
}

func TestHooksThatCannotRunSayWhy(t *testing.T) {
	w := hookWorkers(t)
	pod := planPod("| main", v1.RestartPolicyAlways)
	if err := w.opts.Runtime.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		story   string
		ctx     context.Context
		handler v1.LifecycleHandler
		want    string
	}{
		{"no action", t.Context(), v1.LifecycleHandler{}, "no action"},
		{"tcpSocket", t.Context(), v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{}}, "tcpSocket is not supported"},
		{"exec in an unknown container", t.Context(), v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"a"}}}, "not found"},
		{"a port without a name", t.Context(), v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Host: "127.0.0.1", Port: intstr.FromString("admin")}}, `port "admin" is neither`},
		{"a port out of range", t.Context(), v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Host: "127.0.0.1", Port: intstr.FromInt32(65536)}}, `port "65536" is neither`},
		{"a sleep cut short", over, v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 60}}, "context canceled"},
	} {
		t.Run(c.story, func(t *testing.T) {
			err := w.run(c.ctx, &hookCall{pod: pod.UID, id: "fake://9", container: &pod.Spec.Containers[0], handler: &c.handler})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAnHTTPHookUsesTheAddressOfThePod(t *testing.T) {
	w := hookWorkers(t)
	pod := planPod("| main", v1.RestartPolicyAlways)
	call := &hookCall{pod: pod.UID, container: &pod.Spec.Containers[0], handler: &v1.LifecycleHandler{
		HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(8080), Path: "bye", Scheme: v1.URISchemeHTTPS},
	}}
	if _, err := w.hookRequest(t.Context(), call); err == nil {
		t.Error("a pod that is not there: got a request, want an error")
	}
	if err := w.opts.Runtime.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	request, err := w.hookRequest(t.Context(), call)
	if err != nil || request.URL.String() != "https://10.0.0.1:8080/bye" {
		t.Errorf("got %v, %v; want https://10.0.0.1:8080/bye", request, err)
	}
}

func TestHooksFollowRedirectsToTheirOwnHostOnly(t *testing.T) {
	visits := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visits[r.URL.Path]++
		switch r.URL.Path {
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		case "/near":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/far":
			http.Redirect(w, r, "http://localhost.invalid/end", http.StatusFound)
		}
	}))
	defer server.Close()
	client := newHookClient()
	for _, path := range []string{"/near", "/far"} {
		response, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		response.Body.Close()
	}
	if _, err := client.Get(server.URL + "/circle"); err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("redirects in a circle: got %v, want an error: the hook has reached nothing", err)
	}
	if visits["/end"] != 1 {
		t.Errorf("visits: got %v, want the end once, by the near redirect", visits)
	}
}

// The kubelet asks a server that answers HTTPS with plain HTTP again without TLS.
func TestAnHTTPSHookFallsBackToHTTPWithoutCredentials(t *testing.T) {
	var seen *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r }))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	call := &hookCall{container: &v1.Container{Name: "main"}, handler: &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{
		Host: at.Hostname(), Port: intstr.FromString(at.Port()), Path: "/drain", Scheme: v1.URISchemeHTTPS,
		HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: "secret"}, {Name: "X-Why", Value: "end"}},
	}}}
	if err := hookWorkers(t).run(t.Context(), call); err != nil {
		t.Fatalf("hook: %v", err)
	}
	if seen.URL.Path != "/drain" || seen.Header.Get("X-Why") != "end" || seen.Header.Get("Authorization") != "" {
		t.Errorf("got %s with %v, want the request without its credentials", seen.URL, seen.Header)
	}
	if call.fellBack != at.Host {
		t.Errorf("fell back to %q, want %q", call.fellBack, at.Host)
	}
}
