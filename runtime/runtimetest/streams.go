package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// streamer returns nil, and says so, if the runtime cannot connect clients to containers.
func (f *fixture) streamer(t *testing.T) runtime.Streamer {
	t.Helper()
	s, ok := f.rt.(runtime.Streamer)
	if !ok {
		t.Log("not implemented: runtime.Streamer; kubectl exec, attach and port-forward fail on such a node")
		return nil
	}
	return s
}

// output is what a client gets, and signals each write.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // of capacity 1
}

func newOutput() *output { return &output{written: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.written <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until the client has got something.
func (o *output) await(t *testing.T, want string) {
	t.Helper()
	over := timeout(t)
	for !strings.Contains(o.String(), want) {
		select {
		case <-o.written:
		case <-over:
			t.Fatalf("the client has got %q, want %q", o.String(), want)
		}
	}
}

func testExecStream(t *testing.T, f *fixture) {
	s := f.streamer(t)
	if s == nil {
		return
	}
	pod := f.newPod("exec", "hear")
	pod.Spec.Containers[0].WorkingDir = "/etc"
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, v1.EnvVar{Name: "INSIDE", Value: "yes"})
	id := f.start(t, pod)[0]
	for _, c := range []struct {
		script, stdin      string
		code               int
		wantOut, wantError string
	}{
		{"exit 0", "", 0, "", ""},
		{"echo $INSIDE; pwd >&2; exit 3", "", 3, "yes\n", "/etc\n"},
		{"kill -TERM $$", "", 143, "", ""},
		{"cat; echo end >&2", "what the client says", 0, "what the client says", "end\n"},
		{"head -c 3000000 /dev/zero | tr '\\0' x", "", 0, strings.Repeat("x", 3000000), ""},
	} {
		stdout, stderr := newOutput(), newOutput()
		code, err := s.ExecStream(t.Context(), id, []string{"sh", "-c", c.script}, runtime.Streams{Stdin: strings.NewReader(c.stdin), Stdout: stdout, Stderr: stderr})
		if err != nil || code != c.code || stdout.String() != c.wantOut || stderr.String() != c.wantError {
			t.Errorf("%s: got %d %.40q %.40q, %v; want %d %.40q %.40q", c.script, code, stdout, stderr, err, c.code, c.wantOut, c.wantError)
		}
	}
	if code, err := s.ExecStream(t.Context(), id, []string{"sh", "-c", "cat; echo out; echo err >&2; exit 7"}, runtime.Streams{}); code != 7 || err != nil {
		t.Errorf("without streams: got %d, %v; want 7", code, err)
	}
	if _, err := s.ExecStream(t.Context(), id, []string{"no-such-command-anywhere"}, runtime.Streams{}); err == nil {
		t.Error("a command that does not exist: got no error")
	}
}

// terminalScript prints the size of its terminal after each of two lines, once there is one and it is another than before: a runtime may set
// a size later than it passes on what is typed, and busybox's stty prints no size before.
const terminalScript = `test -t 0 && test -t 1 && test -t 2 && echo a terminal; say ready
changed() { until size=$(stty size 2>/dev/null); [ -n "$size" ] && [ "$size" != "$1" ]; do sleep 0.05; done; echo "$size"; }
read first; changed '0 0'; read second; changed '40 120'; exec sleep 100000`

func testExecStreamTerminal(t *testing.T, f *fixture) {
	s := f.streamer(t)
	if s == nil {
		return
	}
	id := f.start(t, f.newPod("terminal", "hear"))[0]
	in, input := io.Pipe()
	defer input.Close()
	stdout := newOutput()
	sizes := make(chan runtime.TerminalSize, 1)
	sizes <- runtime.TerminalSize{Width: 120, Height: 40}
	ended := make(chan error, 1)
	var code int
	go func() {
		var err error
		code, err = s.ExecStream(t.Context(), id, []string{"sh", "-c", prologue + terminalScript},
			runtime.Streams{Stdin: in, Stdout: stdout, TTY: true, Resize: sizes})
		ended <- err
	}()
	stdout.await(t, "a terminal\r\n")
	f.expect(t, "ready")
	write := func(text string) {
		if _, err := io.WriteString(input, text); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	stdout.await(t, "40 120\r\n")
	for _, size := range []runtime.TerminalSize{{Width: 80, Height: 25}, {Width: 81, Height: 26}, {Width: 82, Height: 27}} {
		sizes <- size
	}
	// There is room for the third when the second was taken, and then the first is set.
	write("two\n")
	stdout.await(t, "\r\n2")
	write("\x03") // as typed: the terminal makes it a signal
	if err := <-ended; err != nil || code != 130 {
		t.Errorf("got %d, %v; want the end by SIGINT", code, err)
	}
}

func testExecStreamIsKilledWithItsContext(t *testing.T, f *fixture) {
	s := f.streamer(t)
	if s == nil {
		return
	}
	f.expectKilledWithContext(t, func(ctx context.Context, id string) error {
		_, err := s.ExecStream(ctx, id, []string{"sh", "-c", prologue + `trap '' TERM HUP; setsid sleep 100000 & say inside; sleep 100000`}, runtime.Streams{Stdout: io.Discard, TTY: true})
		return err
	})
}

func testExecStreamEndsWithTheContainer(t *testing.T, f *fixture) {
	s := f.streamer(t)
	if s == nil {
		return
	}
	pod := f.newPod("exec", "sleep 100000")
	id := f.start(t, pod)[0]
	ended := make(chan error, 1)
	var code int
	go func() {
		var err error
		code, err = s.ExecStream(t.Context(), id, []string{"sh", "-c", prologue + `say inside; sleep 100000`}, runtime.Streams{})
		ended <- err
	}()
	f.expect(t, "inside")
	if err := f.rt.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || code != 137 {
		t.Errorf("got %d, %v; want 137", code, err)
	}
	f.awaitExit(t, pod, id)
	f.expectNoProcess(t)
	if _, err := s.ExecStream(t.Context(), id, []string{"true"}, runtime.Streams{}); !errors.Is(err, runtime.ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
}

func testAttach(t *testing.T, f *fixture) {
	s := f.streamer(t)
	if s == nil {
		return
	}
	pod := f.newPod("attach", `while read -r line; do echo "got $line"; done; say over; exit 3`)
	pod.Spec.Containers[0].Stdin, pod.Spec.Containers[0].StdinOnce = true, true
	if unsupported := f.rt.Check(pod); len(unsupported) > 0 {
		t.Logf("not implemented: %s", runtime.Describe(unsupported))
		return
	}
	id := f.start(t, pod)[0]
	// A client that goes does not end the container, and a restart of the agent ends no input.
	ctx, cancel := context.WithCancel(t.Context())
	in, input := io.Pipe()
	first := newOutput()
	ended := make(chan error, 1)
	go func() { ended <- s.Attach(ctx, id, runtime.Streams{Stdout: first}) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	f.close()
	f.open(t)
	s = f.streamer(t)
	stdout := newOutput()
	go func() { ended <- s.Attach(t.Context(), id, runtime.Streams{Stdin: in, Stdout: stdout}) }()
	for i := range 3 {
		if _, err := fmt.Fprintln(input, i); err != nil {
			t.Fatal(err)
		}
		stdout.await(t, fmt.Sprintf("got %d\n", i))
	}
	input.Close()
	f.expect(t, "over")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if c := f.awaitExit(t, pod, id); c.ExitCode != 3 {
		t.Errorf("got exit code %d, want 3", c.ExitCode)
	}
	if got := f.output(t, id, runtime.LogOptions{}); got != "got 0\ngot 1\ngot 2\n" {
		t.Errorf("the log is %q, want what the clients got", got)
	}
	if err := s.Attach(t.Context(), id, runtime.Streams{Stdout: stdout}); !errors.Is(err, runtime.ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
}

// A server of the test stands for one of the pod: that needs the network of the machine.
func testPortForward(t *testing.T, f *fixture) {
	s := f.streamer(t)
	if s == nil {
		return
	}
	if !runtime.SharesHostNetwork(f.rt) {
		t.Log("not tried: the runtime's containers have a network of their own")
		return
	}
	pod := f.newPod("port", "hear")
	f.start(t, pod)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	served := make(chan error, 1)
	go func() {
		connection, err := listener.Accept()
		if err == nil {
			defer connection.Close()
			_, err = io.Copy(connection, connection) // until the client has said all
		}
		served <- err
	}()
	client, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- s.PortForward(t.Context(), pod.UID, int32(listener.Addr().(*net.TCPAddr).Port), theirs)
	}()
	if _, err := io.WriteString(client, "hello"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 5)
	if _, err := io.ReadFull(client, answer); err != nil || string(answer) != "hello" {
		t.Errorf("got %q, %v; want the echo", answer, err)
	}
	client.Close()
	if err := errors.Join(<-ended, <-served); err != nil {
		t.Error(err)
	}
	_, theirs = net.Pipe()
	if err := s.PortForward(t.Context(), "no-such-pod", 1, theirs); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func testStats(t *testing.T, f *fixture) {
	s, ok := f.rt.(runtime.Statser)
	if !ok {
		t.Log("not implemented: runtime.Statser; kubectl top has no values for such a node")
		return
	}
	pod := f.newPod("stats", `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; say counted; hear`, "hear")
	ids := f.start(t, pod)
	f.expect(t, "counted")
	stats, err := s.PodStats(t.Context(), pod.UID)
	if err != nil || len(stats.Containers) != 2 || stats.Containers[0].ID != ids[0] || stats.Containers[1].Name != "c1" {
		t.Fatalf("got %+v, %v; want both containers, by name", stats, err)
	}
	c := stats.Containers[0]
	if c.CPU.Nanoseconds == 0 || c.Memory.WorkingSet == 0 || c.Processes == 0 || c.At.IsZero() || c.StartedAt.IsZero() {
		t.Errorf("got %+v, want CPU time, memory, processes and times", c)
	}
	f.tell(t)
	f.tell(t)
	f.awaitExit(t, pod, ids[0])
	f.awaitExit(t, pod, ids[1])
	if stats, err := s.PodStats(t.Context(), pod.UID); err != nil || len(stats.Containers) != 0 {
		t.Errorf("got %+v, %v; want no container, since none runs", stats, err)
	}
	if _, err := s.PodStats(t.Context(), "no-such-pod"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}
