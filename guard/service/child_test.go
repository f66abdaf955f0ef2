package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/statusd/statusd/guard"
)

// newChild is a child that runs a script, and is stopped at the end of the test.
func newChild(t *testing.T, name, script string, grace time.Duration) *Child {
	t.Helper()
	c, err := NewChild(ChildOptions{Name: name, Command: []string{"/bin/sh", "-c", script}, Grace: grace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return c
}

func state(t *testing.T, s guard.Service) guard.Process {
	t.Helper()
	p, err := s.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// await waits until the state of a child is as wanted; the bound is the test's own.
func await(t *testing.T, c *Child, want func(guard.Process) bool) guard.Process {
	t.Helper()
	for {
		if p := state(t, c); want(p) {
			return p
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s is %+v", c.Name(), state(t, c))
		}
		time.Sleep(time.Millisecond) // a state of another process: there is no event to wait for
	}
}

func TestAChildIsStartedStoppedAndRestarted(t *testing.T) {
	c := newChild(t, "kubelet", "exec sleep 1000", time.Minute)
	if p := state(t, c); p.Exists || !p.Sure {
		t.Errorf("before the start: %+v", p)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := state(t, c)
	if !first.Exists || first.PID == 0 || first.Started.IsZero() {
		t.Errorf("after the start: %+v", first)
	}
	if err := c.Start(t.Context()); err != nil || state(t, c).PID != first.PID {
		t.Errorf("a second start made another process (%v)", err)
	}
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second := state(t, c); !second.Exists || second.PID == first.PID {
		t.Errorf("after the restart: %+v", second)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := state(t, c); p.Exists || p.Signal != "SIGTERM" || p.Ended.IsZero() {
		t.Errorf("after the stop: %+v", p)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

// The end of a process is reported at once, with its exit code, which may be 0.
func TestTheEndOfAChildIsSeen(t *testing.T) {
	for _, code := range []int{0, 3} {
		c := newChild(t, "kubelet", "exit "+strconv.Itoa(code), time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		news := make(chan struct{}, 100)
		watched := make(chan error, 1)
		go func() { watched <- c.Watch(ctx, func() { news <- struct{}{} }) }()
		<-news // at the begin
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		for range news {
			if p := state(t, c); !p.Exists && p.ExitCode != nil {
				if *p.ExitCode != code {
					t.Errorf("exit code %d, want %d", *p.ExitCode, code)
				}
				break
			}
		}
		cancel()
		if err := <-watched; err != nil {
			t.Error(err)
		}
		if err := c.Restart(t.Context()); err != nil { // which systemd's Restart=on-failure would not do after 0
			t.Error(err)
		}
	}
}

func TestAChildThatIsStoppedBySIGSTOP(t *testing.T) {
	c := newChild(t, "kubelet", "exec sleep 1000", time.Minute)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(state(t, c).PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	frozen := await(t, c, func(p guard.Process) bool { return p.Stopped })
	if err := c.Restart(t.Context()); err != nil { // without waiting for the grace of a minute
		t.Fatal(err)
	}
	if p := state(t, c); !p.Exists || p.PID == frozen.PID || p.Stopped {
		t.Errorf("after the restart: %+v", p)
	}
}

func TestAChildThatIgnoresSIGTERMIsKilled(t *testing.T) {
	c := newChild(t, "kubelet", `trap "" TERM; echo ready; while :; do sleep 0.1; done`, time.Millisecond)
	reader, writer := io.Pipe()
	c.o.Output = writer
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(reader, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := state(t, c); p.Exists || p.Signal != "SIGKILL" {
		t.Errorf("got %+v", p)
	}
}

// gate is an output that takes nothing before it is opened, as a disk that is slow.
type gate struct {
	begun, open chan struct{}
	once        sync.Once
	text        strings.Builder
	written     chan string // gets each text, if it is not nil
}

func (g *gate) Write(data []byte) (int, error) {
	g.once.Do(func() { close(g.begun) })
	<-g.open
	if g.written != nil {
		g.written <- string(data)
	}
	return g.text.Write(data)
}

// The last words of a process are kept, also if those before them are written slowly, and it has left something running that
// holds its output.
func TestTheLastWordsOfAChild(t *testing.T) {
	dir := t.TempDir()
	begin, pids := filepath.Join(dir, "go"), filepath.Join(dir, "pids")
	if err := syscall.Mkfifo(begin, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newChild(t, "kubelet", `sleep 1000 & echo first; read x < `+begin+`; echo $$ $! > `+pids+`; echo last; exit 3`, time.Minute)
	out := &gate{begun: make(chan struct{}), open: make(chan struct{})}
	c.o.Output, c.patience = out, time.Hour
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-out.begun // the first words are being written
	if err := os.WriteFile(begin, []byte("on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var shell, left int
	await(t, c, func(guard.Process) bool {
		data, _ := os.ReadFile(pids)
		n, _ := fmt.Sscanf(string(data), "%d %d\n", &shell, &left)
		return n == 2 && isGone(shell)
	})
	close(out.open)
	await(t, c, func(p guard.Process) bool { return !p.Exists })
	if got := out.text.String(); got != "first\nlast\n" {
		t.Errorf("kept %q", got)
	}
	if err := syscall.Kill(left, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// A disk that hangs does not hide that a process has ended; its last words are kept when the disk answers.
func TestADiskThatHangsHidesNoEnd(t *testing.T) {
	c := newChild(t, "kubelet", `echo last; exit 3`, time.Minute)
	out := &gate{begun: make(chan struct{}), open: make(chan struct{}), written: make(chan string, 1)}
	c.o.Output, c.patience = out, time.Millisecond
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := await(t, c, func(p guard.Process) bool { return !p.Exists }); *p.ExitCode != 3 {
		t.Errorf("ended with %+v", p)
	}
	close(out.open)
	if got := <-out.written; got != "last\n" {
		t.Errorf("kept %q", got)
	}
}

// A command may be a shell that runs the kubelet. What it runs ends with it, also if that takes SIGTERM later or not at all:
// another one could not have its ports.
func TestWhatAChildHasStartedIsStoppedToo(t *testing.T) {
	for name, script := range map[string]string{
		"ends at once":          `sleep 1000 & echo $! > "$PIDS"; wait`,
		"takes a while":         `(trap 'sleep 0.2; exit' TERM; while :; do sleep 0.01; done) & echo $! > "$PIDS"; wait`,
		"ignores SIGTERM":       `(trap '' TERM; while :; do sleep 0.01; done) & echo $! > "$PIDS"; wait`,
		"both ignore SIGTERM":   `trap '' TERM; (while :; do sleep 0.01; done) & echo $! > "$PIDS"; while :; do wait; done`,
		"the shell is left out": `echo $$ > "$PIDS"; exec sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			c, err := NewChild(ChildOptions{Name: "kubelet", Command: []string{"/bin/sh", "-c", script}, Env: []string{"PIDS=" + pids}, Grace: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Stop(context.Background()) })
			if err := c.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			started := 0
			await(t, c, func(guard.Process) bool {
				data, _ := os.ReadFile(pids)
				text, whole := strings.CutSuffix(string(data), "\n")
				started, _ = strconv.Atoi(text)
				return whole
			})
			if err := c.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			await(t, c, func(guard.Process) bool { return isGone(started) })
		})
	}
}

// isGone reports whether a process is gone, or waits for its parent, which may be slow to take it.
func isGone(pid int) bool {
	s, err := readStat("/proc", pid)
	return err != nil || s.state == 'Z' || s.state == 'X'
}

func TestACommandThatDoesNotExist(t *testing.T) {
	c, err := NewChild(ChildOptions{Command: []string{filepath.Join(t.TempDir(), "kubelet")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if p := state(t, c); p.Exists {
		t.Errorf("got %+v", p)
	}
	if _, err := NewChild(ChildOptions{}); err == nil {
		t.Error("a child without a command")
	}
}

// The runtime is started first and is ready before the kubelet is started; both are stopped in the reverse order.
func TestServicesAreStartedAndStoppedInOrder(t *testing.T) {
	dir := t.TempDir()
	socket, log := filepath.Join(dir, "runtime.sock"), filepath.Join(dir, "log")
	script := func(name, ready string) string {
		return `echo start ` + name + ` >> ` + log + `; trap "echo stop ` + name + ` >> ` + log + `; exit 0" TERM; ` + ready + ` while :; do sleep 0.01; done`
	}
	runtime := newChild(t, "containerd", script("containerd", "touch "+socket+";"), time.Minute)
	kubelet := newChild(t, "kubelet", `test -e `+socket+` || echo too early >> `+log+`; `+script("kubelet", "touch "+socket+".lease;"), time.Minute)
	exists := func(path string) func(context.Context) error {
		return func(context.Context) error { _, err := os.Stat(path); return err }
	}
	order := Order{Steps: []Step{{Service: runtime, Ready: exists(socket)}, {Service: kubelet, Ready: exists(socket + ".lease")}}}
	if err := order.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := order.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(log)
	if got, want := strings.Fields(string(lines)), "start containerd start kubelet stop kubelet stop containerd"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// A service that never becomes ready keeps those after it from being started.
func TestAServiceThatIsNotReady(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	runtime, kubelet := newChild(t, "containerd", "exec sleep 1000", time.Minute), newChild(t, "kubelet", "exec sleep 1000", time.Minute)
	no := errors.New("connection refused")
	asked := 0
	order := Order{Steps: []Step{{Service: runtime, Ready: func(context.Context) error {
		if asked++; asked == 2 {
			cancel()
		}
		return no
	}}, {Service: kubelet}}}
	if err := order.Up(ctx); !errors.Is(err, no) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if p := state(t, kubelet); p.Exists || p.Signal != "" {
		t.Errorf("the kubelet was started: %+v", p)
	}
}

// A service that ends while it is waited for is not waited for any longer.
func TestAServiceThatEndsBeforeItIsReady(t *testing.T) {
	no := errors.New("the lease is not renewed")
	order := Order{Steps: []Step{{Service: newChild(t, "kubelet", "exit 1", time.Minute), Within: time.Hour, Ready: func(context.Context) error { return no }}}}
	if err := order.Up(t.Context()); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
}

func TestFoundLooksAndTouchesNothing(t *testing.T) {
	c := newChild(t, "kubelet", "exec sleep 1000", time.Minute)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	child := state(t, c)
	file := filepath.Join(t.TempDir(), "kubelet.pid")
	f := Found{PIDFile: file}
	if p := state(t, f); p.Exists || p.Sure {
		t.Errorf("without the file: %+v", p)
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(child.PID)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := state(t, f); !p.Exists || p.PID != child.PID || p.Started.Sub(child.Started).Abs() > time.Hour {
		t.Errorf("got %+v, want %+v", p, child)
	}
	for _, err := range []error{f.Start(t.Context()), f.Stop(t.Context()), f.Restart(t.Context())} {
		if !errors.Is(err, ErrOnlyFound) {
			t.Errorf("got %v", err)
		}
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := state(t, f); p.Exists || p.Sure {
		t.Errorf("after its end: %+v", p)
	}
}

// By name: what a search of another name does not find.
func TestFoundByName(t *testing.T) {
	proc := t.TempDir()
	dir := filepath.Join(proc, "77")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"77/comm": "kubelet\n", "uptime": "1000.00 1.00\n",
		"77/stat": "77 (ku) bel (et) T 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 90000 1 1",
	} {
		if err := os.WriteFile(filepath.Join(proc, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := state(t, Found{Comm: "kubelet", Proc: proc})
	if age := time.Since(p.Started); !p.Exists || p.PID != 77 || !p.Stopped || age < 100*time.Second {
		t.Errorf("got %+v", p)
	}
	if p := state(t, Found{Comm: "containerd", Proc: proc}); p.Exists || p.Sure {
		t.Errorf("got %+v", p)
	}
}

// A search by name finds another process of the name, not the one that searches: statusd observe looks for statusd.
func TestFoundSkipsItself(t *testing.T) {
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Found{Comm: strings.TrimSpace(string(comm))}.State(t.Context())
	if err != nil || p.PID == os.Getpid() {
		t.Errorf("got %+v, %v: a process that looks for its name has found itself", p, err)
	}
}
