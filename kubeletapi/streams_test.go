package kubeletapi_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"

	"github.com/statusd/statusd/kubeletapi"
	"github.com/statusd/statusd/runtime"
)

const execPath = "/exec/default/web/main?command=a&command=b+c&input=1&output=1&error=1"

// protocols are the ways in which clients speak to a kubelet.
var protocols = map[string]func(config *rest.Config, address string) (remotecommand.Executor, error){
	"SPDY": func(config *rest.Config, address string) (remotecommand.Executor, error) {
		target, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		return remotecommand.NewSPDYExecutor(config, http.MethodPost, target)
	},
	"WebSocket": func(config *rest.Config, address string) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(config, http.MethodGet, address)
	},
	"WebSocket of before": func(config *rest.Config, address string) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutorForProtocols(config, http.MethodGet, address, "v4.channel.k8s.io")
	},
}

// web starts a server with the pod default/web.
func web(t *testing.T, rt *fakeRuntime) alone {
	t.Helper()
	return startAlone(t, kubeletapi.Options{Runtime: rt, Pods: &fakePods{pods: []*v1.Pod{webPod(t, rt)}}})
}

func TestACommandHasItsStreamsAndItsExitCode(t *testing.T) {
	for name, newExecutor := range protocols {
		t.Run(name, func(t *testing.T) {
			closes := name != "WebSocket of before" // that one cannot close stdin
			rt := newFakeRuntime()
			rt.exec = func(_ context.Context, command []string, streams runtime.Streams) (int, error) {
				in := make([]byte, len("input"))
				if _, err := io.ReadFull(streams.Stdin, in); err != nil {
					return 0, err
				}
				if closes {
					if _, err := streams.Stdin.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
						return 0, fmt.Errorf("stdin after its end: %v", err)
					}
				}
				fmt.Fprintf(streams.Stdout, "%q got %s, tty %t", command, in, streams.TTY)
				fmt.Fprint(streams.Stderr, "complaint")
				return 42, nil
			}
			s := web(t, rt)
			executor, err := newExecutor(s.client, "https://"+s.address+execPath)
			if err != nil {
				t.Fatal(err)
			}
			var out, errs safeBuffer
			err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &errs})
			exit, ok := errors.AsType[exec.CodeExitError](err)
			if !ok || exit.Code != 42 {
				t.Errorf("got %v, want exit code 42", err)
			}
			if got, want := out.String(), `["a" "b c"] got input, tty false`; got != want {
				t.Errorf("stdout: got %q, want %q", got, want)
			}
			if errs.String() != "complaint" {
				t.Errorf("stderr: got %q", errs.String())
			}
		})
	}
}

// terminal has one size, and then is asked no more.
type terminal struct {
	sizes chan remotecommand.TerminalSize
}

func (t terminal) Next() *remotecommand.TerminalSize {
	size, ok := <-t.sizes
	if !ok {
		return nil
	}
	return &size
}

func TestATerminalHasASizeThatChanges(t *testing.T) {
	for name, newExecutor := range protocols {
		t.Run(name, func(t *testing.T) {
			rt := newFakeRuntime()
			sizes := make(chan remotecommand.TerminalSize, 2)
			sizes <- remotecommand.TerminalSize{Width: 80, Height: 24}
			rt.exec = func(_ context.Context, _ []string, streams runtime.Streams) (int, error) {
				if !streams.TTY || streams.Stderr != nil {
					return 0, fmt.Errorf("tty %t, stderr %v: want a terminal, which has one output", streams.TTY, streams.Stderr)
				}
				fmt.Fprint(streams.Stdout, <-streams.Resize)
				sizes <- remotecommand.TerminalSize{Width: 132, Height: 43}
				fmt.Fprint(streams.Stdout, <-streams.Resize)
				close(sizes)
				return 0, nil
			}
			s := web(t, rt)
			executor, err := newExecutor(s.client, "https://"+s.address+"/exec/default/web/main?command=a&output=1&tty=1")
			if err != nil {
				t.Fatal(err)
			}
			var out safeBuffer
			if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Tty: true, TerminalSizeQueue: terminal{sizes}}); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != "{80 24}{132 43}" {
				t.Errorf("got sizes %q", got)
			}
		})
	}
}

func TestACommandEndsWithTheConnectionOfItsClient(t *testing.T) {
	for name, upgrade := range map[string]string{"WebSocket": upgradeWebSocket, "WebSocket of before": strings.Replace(upgradeWebSocket, "v5", "v4", 1), "SPDY": ""} {
		for _, reads := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, stdin is read %t", name, reads), func(t *testing.T) {
				rt := newFakeRuntime()
				began, ended := make(chan struct{}), make(chan struct{})
				rt.exec = func(ctx context.Context, _ []string, streams runtime.Streams) (int, error) {
					defer close(ended)
					close(began)
					if reads {
						go func() { _, _ = io.Copy(io.Discard, streams.Stdin) }()
					}
					<-ctx.Done()
					return 0, ctx.Err()
				}
				s := web(t, rt)
				if upgrade == "" {
					vanishSPDY(t, s, began)
				} else {
					vanishWebSocket(t, s, upgrade, began)
				}
				<-ended
			})
		}
	}
}

// vanishSPDY begins a command, sends more than buffers hold, and leaves.
func vanishSPDY(t *testing.T, s alone, began <-chan struct{}) {
	t.Helper()
	executor, err := protocols["SPDY"](s.client, "https://"+s.address+execPath)
	if err != nil {
		t.Fatal(err)
	}
	ctx, vanish := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	streamed := make(chan error, 1)
	go func() {
		streamed <- executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: io.Discard, Stderr: io.Discard})
	}()
	<-began
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for chunk := make([]byte, 32<<10); ; {
			if _, err := feed.Write(chunk); err != nil {
				return
			}
		}
	}()
	vanish()
	<-streamed
	_ = in.Close()
	<-fed
}

func vanishWebSocket(t *testing.T, s alone, upgrade string, began <-chan struct{}) {
	t.Helper()
	conn := raw(t, s)
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\n%s\r\n\r\n", execPath, upgrade)
	<-began
	// Frames of stdin of 60 KiB, masked with zeros, until the server takes no more for a moment.
	frame := append([]byte{0x82, 0xfe, 0xf0, 0, 0, 0, 0, 0}, make([]byte, 60<<10)...)
	if err := conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := conn.Write(frame); err != nil {
			break
		}
	}
	conn.NetConn().Close()
}

const (
	upgradeSPDY      = "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: portforward.k8s.io"
	upgradeWebSocket = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io"
)

// raw connects as a client that speaks no more than it must.
func raw(t *testing.T, s alone) *tls.Conn {
	t.Helper()
	config, err := rest.TLSConfigFor(s.client)
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = nil
	conn, err := tls.Dial("tcp", s.address, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Clients that upgrade and then say nothing hold nothing once they are gone, nor do they hold up the end of the server:
// TestMain looks for goroutines, and start for the end of Run.
func TestHalfOpenStreamsLeaveNothing(t *testing.T) {
	for _, path := range []string{execPath, "/attach/default/web/main?output=1", "/portForward/default/web?port=80"} {
		for name, upgrade := range map[string]string{"SPDY": upgradeSPDY, "WebSocket": upgradeWebSocket} {
			for _, leaves := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s leaves=%t", path, name, leaves), func(t *testing.T) { halfOpen(t, path, upgrade, leaves) })
			}
		}
	}
}

// halfOpen upgrades a connection and says nothing more.
func halfOpen(t *testing.T, path, upgrade string, leaves bool) {
	rt := newFakeRuntime()
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	rt.exec = func(ctx context.Context, _ []string, _ runtime.Streams) (int, error) { return 0, wait(ctx) }
	rt.attach = func(ctx context.Context, _ runtime.Streams) error { return wait(ctx) }
	rt.forward = func(ctx context.Context, _ int32, stream io.ReadWriteCloser) error { return wait(ctx) }
	conn := raw(t, web(t, rt))
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\n%s\r\n\r\n", strings.Replace(path, "POST", "GET", 1), upgrade)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if leaves {
		conn.Close()
	}
}

func TestAttachGetsTheStreamsOfTheContainer(t *testing.T) {
	rt := newFakeRuntime()
	rt.attach = func(_ context.Context, streams runtime.Streams) error {
		if streams.Stdin != nil || streams.Stderr != nil {
			return errors.New("streams that were not asked for")
		}
		_, err := fmt.Fprint(streams.Stdout, "of the container")
		return err
	}
	s := web(t, rt)
	executor, err := protocols["SPDY"](s.client, "https://"+s.address+"/attach/default/web/main?output=1")
	if err != nil {
		t.Fatal(err)
	}
	var out safeBuffer
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "of the container" {
		t.Errorf("got %q", out.String())
	}
}

func TestPortForwardConnectsToAPortOfThePod(t *testing.T) {
	rt := newFakeRuntime()
	rt.forward = func(_ context.Context, port int32, stream io.ReadWriteCloser) error {
		defer stream.Close()
		line, err := bufio.NewReader(stream).ReadString('\n')
		if err == nil {
			_, err = fmt.Fprintf(stream, "port %d got %s", port, line)
		}
		return err
	}
	s := web(t, rt)
	transport, upgrader, err := spdy.RoundTripperFor(s.client)
	if err != nil {
		t.Fatal(err)
	}
	target := &url.URL{Scheme: "https", Host: s.address, Path: "/portForward/default/web"}
	stop, ready := make(chan struct{}), make(chan struct{})
	var out safeBuffer
	forwarder, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target), []string{"0:8080"}, stop, ready, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- forwarder.ForwardPorts() }()
	defer func() {
		close(stop)
		<-done
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintln(conn, "hello")
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || answer != "port 8080 got hello\n" {
		t.Errorf("got %q, %v\n%s", answer, err, out.String())
	}
}

func TestACommandMayBeLongButNotEndless(t *testing.T) {
	rt := newFakeRuntime()
	s := web(t, rt)
	executor, err := protocols["SPDY"](s.client, "https://"+s.address+"/exec/default/web/main?output=1&command=echo&command="+strings.Repeat("x", 900<<10))
	if err != nil {
		t.Fatal(err)
	}
	var out safeBuffer
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out}); err != nil || len(out.String()) != 900<<10+1 {
		t.Errorf("a command of 900 KiB: got %d bytes, %v", len(out.String()), err)
	}
	conn := raw(t, s)
	go fmt.Fprintf(conn, "GET /exec/default/web/main?command=%s HTTP/1.1\r\nHost: node\r\n\r\n", bytes.Repeat([]byte("x"), 2<<20))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a command of 2 MiB: got %s", response.Status)
	}
}

// A static pod is found by its own UID and by that of its mirror, which is the one that the API shows.
func TestAStaticPodIsFoundByTheUIDOfItsMirror(t *testing.T) {
	rt := newFakeRuntime()
	pod := webPod(t, rt)
	s := startAlone(t, kubeletapi.Options{Runtime: rt, Pods: &fakePods{pods: []*v1.Pod{pod}, mirrors: map[types.UID]types.UID{"mirror": "web-uid"}}})
	for _, c := range []struct {
		uid  string
		want int
	}{{"web-uid", 200}, {"mirror", 200}, {"other", 500}} {
		response, err := s.http(t).Post("https://"+s.address+"/run/default/web/"+c.uid+"/main?cmd=echo+hello", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.want || c.want == 200 && string(body) != "hello\n" {
			t.Errorf("UID %s: got %s %q", c.uid, response.Status, body)
		}
	}
}

func TestACommandIsRequired(t *testing.T) {
	s := web(t, newFakeRuntime())
	for path, want := range map[string]string{
		"/exec/default/web/main?output=1":                   "you must specify a command",
		"/exec/default/nothing/main?output=1":               "pod does not exist",
		"/exec/default/web/main?output=1&command=":          "Upgrade request required\n",
		"/exec/default/web/main?output=1&command=a%00b":     "Upgrade request required\n",
		"/exec/default/web/%2e%2e?output=1&command=a":       "container not found (\"..\")",
		"/exec/default/web/main%00?output=1&command=a":      "container not found (\"main\\x00\")",
		"/containerLogs/default/web/%2e%2e%2fmain?output=1": "404: Page Not Found",
	} {
		if status, body := s.get(t, path); body != want {
			t.Errorf("%s: got %d %q, want %q", path, status, body, want)
		}
	}
}

// A client without credentials that announces a body and does not send it is gone soon.
func TestARefusedClientDoesNotKeepItsConnection(t *testing.T) {
	s := web(t, newFakeRuntime())
	conn, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /run/default/web/main?cmd=a HTTP/1.1\r\nHost: node\r\nContent-Length: 1000\r\n\r\n")
	answer, err := io.ReadAll(conn) // until the server closes it
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 401 Unauthorized") {
		t.Errorf("got %q, %v", answer, err)
	}
}
