package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime"
)

// sleeping is a host with one container that does nothing.
func sleeping(t *testing.T) (*host, string) {
	t.Helper()
	h := newHost(t)
	h.open(t)
	return h, h.start(t, scriptPod("pod", "exec sleep 100000"))
}

// text is a writer for one goroutine at a time that another may read.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.String()
}

// noticed tells when it is first written to.
type noticed struct {
	text
	once  sync.Once
	first chan struct{}
}

func (n *noticed) Write(p []byte) (int, error) {
	defer n.once.Do(func() { close(n.first) })
	return n.text.Write(p)
}

func (n *noticed) started() bool {
	select {
	case <-n.first:
		return true
	default:
		return false
	}
}

func sh(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestACommandHasTheUserOfItsContainer(t *testing.T) {
	h := newHost(t)
	h.open(t)
	if !h.root {
		t.Log("only root can become another user; run as root to see this")
		return
	}
	pod := scriptPod("pod", "exec sleep 100000")
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: new(int64(65534)), RunAsGroup: new(int64(65533))}
	id := h.start(t, pod)
	for _, tty := range []bool{false, true} {
		var out text
		code, err := h.ExecStream(t.Context(), id, sh(`id -u; id -g; echo $STATUSD_CONTAINER_ID; if [ -t 0 ]; then echo > $(tty) && echo reopened; fi`), runtime.Streams{Stdout: &out, TTY: tty})
		got := strings.Join(strings.Fields(out.String()), " ")
		want := "65534 65533 " + id
		if tty {
			want += " reopened"
		}
		if code != 0 || err != nil || got != want {
			t.Errorf("terminal %v: got %d, %v and %q, want %q", tty, code, err, got, want)
		}
	}
}

// hiding starts a process that has left the group and session of its parent and has wiped its
// environment, says its number, and waits.
const hiding = `setsid env -i /bin/sh -c 'echo $$ > %[1]s; exec sleep 100000' & echo $$ > %[1]s; wait`

func TestAClientThatGoesTakesAllOfItsCommandAlong(t *testing.T) {
	h, id := sleeping(t)
	for _, tty := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := h.ExecStream(ctx, id, sh(fmt.Sprintf(hiding, h.pipe)), runtime.Streams{Stdout: io.Discard, TTY: tty})
			ended <- err
		}()
		first, second := h.hearPID(t), h.hearPID(t)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		expectEnded(t, "the command", first)
		expectEnded(t, "what it started", second)
	}
	if c := h.only(t, "pod"); c.State != runtime.Running {
		t.Errorf("got %+v, want the container to run on", c)
	}
}

// failing is a client that has gone without a word.
type failing struct{}

var errGone = errors.New("gone")

func (failing) Write([]byte) (int, error) { return 0, errGone }

func TestAClientThatTakesNoOutputEndsItsCommand(t *testing.T) {
	h, id := sleeping(t)
	_, err := h.ExecStream(t.Context(), id, sh("echo hello; exec sleep 100000"), runtime.Streams{Stdout: failing{}})
	if !errors.Is(err, errGone) {
		t.Errorf("got %v, want %v", err, errGone)
	}
}

func TestTheEndOfAContainerEndsItsCommands(t *testing.T) {
	h, id := sleeping(t)
	type result struct {
		code int
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		code, err := h.ExecStream(t.Context(), id, sh(fmt.Sprintf(hiding, h.pipe)), runtime.Streams{})
		ended <- result{code, err}
	}()
	first, second := h.hearPID(t), h.hearPID(t)
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.code != 137 || got.err != nil {
		t.Errorf("got %d, %v; want 137", got.code, got.err)
	}
	h.awaitExit(t, "pod")
	expectEnded(t, "the command", first)
	expectEnded(t, "what it started", second)
	if _, err := h.ExecStream(t.Context(), id, sh("true"), runtime.Streams{}); !errors.Is(err, runtime.ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
}

// slow takes nothing until its gate is open.
type slow struct {
	gate chan struct{}
	n    int64
}

func (s *slow) Write(p []byte) (int, error) {
	<-s.gate
	s.n += int64(len(p))
	return len(p), nil
}

// The deadline is over for a client that takes its output slowly. It gets all of it, though
// another process has the pipe open.
func TestASlowClientGetsAllOutput(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	const size = 60_000 // less than a pipe holds
	if _, err := write.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	var out text
	if err := copyOutput(read, &out); err != nil || len(out.String()) != size {
		t.Errorf("got %d bytes, %v; want %d", len(out.String()), err, size)
	}
}

// What a command leaves in the background stays until the container ends.
func TestBackgroundProcessesStayInTheContainer(t *testing.T) {
	h, id := sleeping(t)
	code, err := h.ExecStream(t.Context(), id, sh(fmt.Sprintf(`setsid env -i /bin/sh -c 'echo $$ > %[1]s; exec sleep 100000' > /dev/null & exit 4`, h.pipe)), runtime.Streams{Stdout: io.Discard})
	if code != 4 || err != nil {
		t.Errorf("got %d, %v; want 4", code, err)
	}
	background := h.hearPID(t)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", background.PID)); err != nil {
		t.Errorf("the process in the background has ended: %v", err)
	}
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	h.awaitExit(t, "pod")
	expectEnded(t, "the process in the background", background)
}

func TestAttachSeesWhatTheContainerWritesAndWritesWhatItReads(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", fmt.Sprintf(`while read line; do echo "got $line"; echo "err $line" >&2; done; echo over; echo over > %s`, h.pipe))
	pod.Spec.Containers[0].Stdin, pod.Spec.Containers[0].StdinOnce = true, true
	id := h.start(t, pod)
	h.close() // the agent restarts: the shim has the streams
	h.open(t)
	in, input := io.Pipe()
	var out, stderr text
	second := &noticed{first: make(chan struct{})}
	ended := make(chan error, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- h.Attach(t.Context(), id, runtime.Streams{Stdin: in, Stdout: &out, Stderr: &stderr}) }()
	go func() { ended <- h.Attach(ctx, id, runtime.Streams{Stdout: second}) }()
	want := ""
	for i := 0; !second.started(); i++ { // until both are attached
		if _, err := fmt.Fprintln(input, i); err != nil {
			t.Fatal(err)
		}
		want += fmt.Sprintln("got", i)
	}
	input.Close() // with stdinOnce, that ends the container's input
	if got := h.hear(t); got != "over" {
		t.Errorf("got %q, want the end of input", got)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if wantErr := strings.ReplaceAll(want, "got", "err"); out.String() != want+"over\n" || stderr.String() != wantErr {
		t.Errorf("got %q and %q, want %q and %q", out.String(), stderr.String(), want, wantErr)
	}
	if !strings.HasSuffix(second.String(), "over\n") {
		t.Errorf("the second client got %q, want the end at least", second.String())
	}
	h.awaitExit(t, "pod")
	if err := h.Attach(t.Context(), id, runtime.Streams{}); !errors.Is(err, runtime.ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
}

func TestAContainerCanHaveATerminal(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", fmt.Sprintf(`trap 'stty size > %[1]s' WINCH; test -t 0 && test -t 1 && test -t 2 && echo "$TERM" > %[1]s
		while :; do read line && break; done; echo "you said $line"; exit 5`, h.pipe))
	pod.Spec.Containers[0].Stdin, pod.Spec.Containers[0].TTY = true, true
	id := h.start(t, pod)
	if got := h.hear(t); got != "xterm" {
		t.Fatalf("got TERM %q, want xterm", got)
	}
	in, input := io.Pipe()
	sizes := make(chan runtime.TerminalSize)
	var out text
	ended := make(chan error, 1)
	go func() {
		ended <- h.Attach(t.Context(), id, runtime.Streams{Stdin: in, Stdout: &out, TTY: true, Resize: sizes})
	}()
	for range 2 { // the first is on its way when the second is taken, and input comes after it
		sizes <- runtime.TerminalSize{Width: 132, Height: 43}
	}
	// The shell runs the trap when the read ends, which it does for a line.
	if _, err := io.WriteString(input, "hello\r"); err != nil {
		t.Fatal(err)
	}
	if got := h.hear(t); got != "43 132" {
		t.Errorf("got size %q, want 43 132", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	input.Close()
	if c := h.awaitExit(t, "pod"); c.ExitCode != 5 {
		t.Errorf("got %+v, want exit code 5", c)
	}
	if !strings.Contains(out.String(), "you said hello\r\n") {
		t.Errorf("got %q, want the answer", out.String())
	}
	logs, err := h.Logs(t.Context(), id, runtime.LogOptions{Stream: runtime.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	if got, err := io.ReadAll(logs); err != nil || !strings.Contains(string(got), "you said hello") {
		t.Errorf("the log is %q, %v; want the answer", got, err)
	}
}

// A client that stops reading is detached, and the container goes on.
func TestAClientThatHangsDoesNotStopTheContainer(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", fmt.Sprintf(`read line; i=0; while [ $i -lt 200 ]; do head -c 10000 /dev/zero; i=$((i+1)); done; echo done > %s; read line`, h.pipe))
	pod.Spec.Containers[0].Stdin = true
	id := h.start(t, pod)
	hung := &slow{gate: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		ended <- h.Attach(t.Context(), id, runtime.Streams{Stdin: strings.NewReader("go\n"), Stdout: hung})
	}()
	if got := h.hear(t); got != "done" {
		t.Errorf("got %q, want the container to go on", got)
	}
	close(hung.gate)
	if err := <-ended; !errors.Is(err, runtime.ErrTooSlow) {
		t.Errorf("got %v, want ErrTooSlow", err)
	}
}

// openFiles is how many descriptors this process has.
func openFiles(t *testing.T) (descriptors int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// awaitEndOf waits until a process has ended.
func awaitEndOf(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	id, err := proc.Identify(number)
	if errors.Is(err, proc.ErrGone) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, id)
}

func TestManyClientsLeaveNothing(t *testing.T) {
	h, id := sleeping(t)
	run := func(execs, followers int) {
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for range followers {
			logs, err := h.Logs(ctx, id, runtime.LogOptions{Follow: true})
			if err != nil {
				t.Fatal(err)
			}
			clients.Go(func() {
				if _, err := io.Copy(io.Discard, logs); !errors.Is(err, context.Canceled) {
					t.Errorf("follow: got %v, want %v", err, context.Canceled)
				}
				if err := logs.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		var commands sync.WaitGroup
		for i := range execs {
			commands.Go(func() {
				var out text
				code, err := h.ExecStream(ctx, id, sh(fmt.Sprintf("cat; exit %d", i)), runtime.Streams{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: io.Discard})
				if code != i || err != nil || out.String() != "hello" {
					t.Errorf("got %d, %v and %q; want %d and what was written", code, err, out.String(), i)
				}
			})
		}
		commands.Wait()
		cancel()
		clients.Wait()
	}
	run(2, 2)
	before := openFiles(t)
	run(50, 200)
	if left, err := filepath.Glob("/proc/self/task/*/children"); err == nil {
		for _, path := range left {
			children, _ := os.ReadFile(path)
			for pid := range strings.FieldsSeq(string(children)) {
				command, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				if strings.Contains(string(command), "exec") && strings.Contains(string(command), h.dir) {
					awaitEndOf(t, pid) // the code of its command comes before its own end
				}
			}
		}
	}
	// The runtime closes its descriptor of a shim once it has learned of the end.
	for after, deadline := openFiles(t), time.Now().Add(10*time.Minute); after > before; after = openFiles(t) {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors are open, %d were before", after, before)
		}
		time.Sleep(time.Millisecond)
	}
}
