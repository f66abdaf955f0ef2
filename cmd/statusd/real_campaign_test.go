//go:build real

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var sessionEvents = flag.Int("events", 5, "through how many reloads, renewals and stops sessions of kubectl are followed")

// campaign has sessions of all kinds through the API server while things happen to statusd.
type campaign struct {
	t       *testing.T
	server  *controlplanetest.Server
	d       *daemon
	pod     *v1.Pod
	release string // the directory of files that scripts wait for
	echo    net.Listener

	kubeconfig []byte
	results    map[string]map[string]int // by event, by session and how it went
	order      []string                  // of the events
}

// Sessions of kubectl go on through hangups, reloads with another config and renewed credentials and certificates, and end at a
// stop, commands with an error: one that ends without an error has ended with 0. make sessions follows them through 100 events.
func TestSessionsOfKubectl_ThroughReloadsRenewalsAndStops(t *testing.T) {
	c := &campaign{t: t, server: shared.Server(t), release: t.TempDir(), results: map[string]map[string]int{}}
	c.start()
	events := []struct {
		name string
		do   func(i int)
	}{
		{"SIGHUP, same config", c.hangUp},
		{"SIGHUP, other config", c.reload},
		{"client certificate renewed", c.renewCredentials},
		{"server certificate renewed", c.renewCertificate},
		{"stop and start", nil},
	}
	long := c.open()
	for i := range *sessionEvents {
		event := events[i%len(events)]
		if c.results[event.name] == nil {
			c.results[event.name], c.order = map[string]int{}, append(c.order, event.name)
		}
		zero, seven := c.execute(i, "0"), c.execute(i, "7")
		if event.do == nil {
			c.d.stop()
			c.stopped(event.name, long, zero, seven)
			c.d.start()
			c.awaitServer()
			long = c.open()
			continue
		}
		event.do(i)
		writeFile(t, fmt.Sprintf("%s/go-%d", c.release, i), "")
		c.count(event.name, "exec exit 0", ended(<-zero.ended, 0))
		c.count(event.name, "exec exit 7", ended(<-seven.ended, 7))
		c.goesOn(event.name, i, long)
	}
	c.d.stop()
	long.close()
	c.report()
}

func (c *campaign) start() {
	c.d = newDaemon(c.t, "campaign").join(c.server)
	c.d.config.Node.Addresses = []string{"127.0.0.1"}
	c.d.config.Server.TLSCertFile, c.d.config.Server.TLSPrivateKeyFile = c.server.ServingCertificate(c.t, "127.0.0.1")
	var err error
	if c.kubeconfig, err = os.ReadFile(c.d.config.Kubeconfig); err != nil {
		c.t.Fatal(err)
	}
	c.d.config.Kubeconfig += ".campaign"
	writeFile(c.t, c.d.config.Kubeconfig, string(c.kubeconfig))
	if c.echo, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.echo.Close() })
	go func() {
		for {
			conn, err := c.echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	c.d.start()
	namespace := c.server.Namespace(c.t)
	history := follow(c.t, c.server.Admin(), namespace)
	c.server.CreatePod(c.t, shellPod(namespace, "shell", "campaign", "i=0; while :; do if [ -e "+c.release+"/line-$i ]; then echo line $i; i=$((i+1)); else [ ! -e "+c.release+"/beat ] || echo beat; sleep 0.05; fi; done"))
	history.await("shell", "that it is ready", isReady)
	c.pod = c.server.GetPod(c.t, namespace, "shell")
}

func (c *campaign) hangUp(int) {
	before := strings.Count(c.d.logged(), "config unchanged")
	c.d.signal(syscall.SIGHUP)
	until(c.t, "the hangup is answered", func() bool { return strings.Count(c.d.logged(), "config unchanged") > before })
}

func (c *campaign) reload(int) {
	before := strings.Count(c.d.logged(), "msg=starting")
	c.d.config.ShutdownTimeout++
	c.d.configFile()
	c.d.signal(syscall.SIGHUP)
	until(c.t, "the reload is over", func() bool { return strings.Count(c.d.logged(), "msg=starting") > before })
}

func (c *campaign) renewCredentials(i int) {
	before := strings.Count(c.d.logged(), "using the new ones")
	writeFile(c.t, c.d.config.Kubeconfig, string(bytes.Join([][]byte{c.kubeconfig, fmt.Appendf(nil, "# renewed %d\n", i)}, nil)))
	until(c.t, "the credentials are used", func() bool { return strings.Count(c.d.logged(), "using the new ones") > before })
}

func (c *campaign) renewCertificate(int) {
	certificate, key := c.server.ServingCertificate(c.t, "127.0.0.1")
	for from, to := range map[string]string{certificate: c.d.config.Server.TLSCertFile, key: c.d.config.Server.TLSPrivateKeyFile} {
		content, err := os.ReadFile(from)
		if err != nil {
			c.t.Fatal(err)
		}
		writeFile(c.t, to, string(content))
	}
	c.awaitServer()
}

// awaitServer returns when the API server reaches the node.
func (c *campaign) awaitServer() {
	c.t.Helper()
	until(c.t, "the node answers", func() bool {
		_, err := c.server.Admin().CoreV1().Pods(c.pod.Namespace).GetLogs("shell", &v1.PodLogOptions{}).DoRaw(c.t.Context())
		return err == nil
	})
}

func (c *campaign) execute(i int, code string) *session {
	c.t.Helper()
	return execute(c.t.Context(), c.t, c.server, c.pod, fmt.Sprintf("echo began; while [ ! -e %s/go-%d ]; do sleep 0.05; done; exit %s", c.release, i, code))
}

// sessions are the sessions that last from one stop to the next.
type sessions struct {
	logs     io.ReadCloser
	lines    *bufio.Reader
	attached *bufio.Reader
	attach   chan error
	detach   context.CancelFunc
	forward  chan error
	unfollow func()
	conn     net.Conn
}

func (c *campaign) open() *sessions {
	c.t.Helper()
	s := &sessions{attach: make(chan error, 1), forward: make(chan error, 1)}
	pods := c.server.Admin().CoreV1().Pods(c.pod.Namespace)
	var err error
	if s.logs, err = pods.GetLogs("shell", &v1.PodLogOptions{Follow: true, TailLines: new(int64(0))}).Stream(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	s.lines = bufio.NewReader(s.logs)
	request := c.server.Admin().CoreV1().RESTClient().Get().Resource("pods").Namespace(c.pod.Namespace).Name("shell")
	attach := request.SubResource("attach").VersionedParams(&v1.PodAttachOptions{Container: "main", Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(c.server.Process.AdminConfig(), http.MethodGet, attach.URL().String())
	if err != nil {
		c.t.Fatal(err)
	}
	read, write := io.Pipe()
	s.attached = bufio.NewReader(read)
	ctx, cancel := context.WithCancel(c.t.Context())
	s.detach = cancel
	go func() {
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: write, Stderr: io.Discard})
		_ = write.CloseWithError(err)
		s.attach <- err
	}()
	// A session has begun when it has something that the pod wrote after it was asked for: attach has no past.
	beat := c.release + "/beat"
	writeFile(c.t, beat, "")
	for name, from := range map[string]*bufio.Reader{"logs -f": s.lines, "attach": s.attached} {
		if line, err := from.ReadString('\n'); line != "beat\n" || err != nil {
			c.t.Fatalf("%s: got %q, %v, want what the pod writes", name, line, err)
		}
	}
	if err := os.Remove(beat); err != nil {
		c.t.Fatal(err)
	}
	c.forwardTo(s)
	return s
}

// nextLine is the next line that the pod was asked for.
func nextLine(from *bufio.Reader) (line string, err error) {
	for line = "beat\n"; line == "beat\n" && err == nil; {
		line, err = from.ReadString('\n')
	}
	return line, err
}

// forwardTo forwards a port to the echo server, and connects.
func (c *campaign) forwardTo(s *sessions) {
	c.t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(c.server.Process.AdminConfig())
	if err != nil {
		c.t.Fatal(err)
	}
	target := c.server.Admin().CoreV1().RESTClient().Post().Resource("pods").Namespace(c.pod.Namespace).Name("shell").SubResource("portforward").URL()
	stop, ready := make(chan struct{}), make(chan struct{})
	s.unfollow = sync.OnceFunc(func() { close(stop) })
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", c.echo.Addr().(*net.TCPAddr).Port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		c.t.Fatal(err)
	}
	go func() { s.forward <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-s.forward:
		c.t.Fatalf("port-forward: %v", err)
	}
	ports, err := forwarder.GetPorts()
	if err == nil {
		s.conn, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (s *sessions) close() {
	s.conn.Close()
	s.unfollow()
	s.detach()
	s.logs.Close()
}

// goesOn looks whether each session that lasts has what the pod writes after the event.
func (c *campaign) goesOn(event string, i int, s *sessions) {
	c.t.Helper()
	n := c.lines()
	want := fmt.Sprintf("line %d\n", n)
	writeFile(c.t, fmt.Sprintf("%s/line-%d", c.release, n), "")
	for name, from := range map[string]*bufio.Reader{"logs -f": s.lines, "attach": s.attached} {
		line, err := nextLine(from)
		c.count(event, name, how(err == nil && line == want, "goes on", fmt.Sprintf("BROKEN: %q, %v", line, err)))
	}
	word := fmt.Appendf(nil, "word %d\n", i)
	_, err := s.conn.Write(word)
	answer := make([]byte, len(word))
	if err == nil {
		_, err = io.ReadFull(s.conn, answer)
	}
	c.count(event, "port-forward", how(err == nil && bytes.Equal(answer, word), "goes on", fmt.Sprintf("BROKEN: %q, %v", answer, err)))
}

// lines is how many lines the pod was asked for.
func (c *campaign) lines() int {
	entries, err := os.ReadDir(c.release)
	if err != nil {
		c.t.Fatal(err)
	}
	n := 0
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "line-") {
			n++
		}
	}
	return n
}

// stopped looks how each session has ended with statusd.
func (c *campaign) stopped(event string, s *sessions, commands ...*session) {
	c.t.Helper()
	for _, command := range commands {
		c.count(event, "exec, killed", how(<-command.ended != nil, "error", "WRONG: success"))
	}
	// The node cuts the connection, but API servers do not pass on an error of a log that they have begun to send. A client
	// that talks to the node gets it: see TestStop_CutsAFollowedLog.
	_, err := io.ReadAll(s.lines)
	c.count(event, "logs -f", how(err != nil, "error", "ends"))
	c.count(event, "attach", how(<-s.attach != nil, "error", "WRONG: success"))
	c.count(event, "port-forward", how(<-s.forward != nil, "error", "WRONG: success"))
	s.close()
}

// ended is how a command has ended that should have ended with a code.
func ended(err error, want int) string {
	var code utilexec.CodeExitError
	switch {
	case err == nil:
		return how(want == 0, "own exit code", "WRONG: success")
	case errors.As(err, &code):
		return how(code.Code == want, "own exit code", fmt.Sprintf("WRONG: exit code %d", code.Code))
	}
	return fmt.Sprintf("BROKEN: %v", err)
}

func how(good bool, yes, no string) string {
	if good {
		return yes
	}
	return no
}

func (c *campaign) count(event, session, how string) {
	c.t.Helper()
	c.results[event][session+": "+how]++
	if strings.HasPrefix(how, "WRONG") || strings.HasPrefix(how, "BROKEN") {
		c.t.Errorf("%s: %s: %s", event, session, how)
	}
}

func (c *campaign) report() {
	for _, event := range c.order {
		var all []string
		for what, n := range c.results[event] {
			all = append(all, fmt.Sprintf("%s %d", what, n))
		}
		slices.Sort(all)
		c.t.Logf("%-28s %s", event, strings.Join(all, " | "))
	}
}
