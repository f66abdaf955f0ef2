package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/statustest"
)

// The types of another package in the signatures of a provider, as virtual-kubelet's are.
type (
	theirSize    struct{ Width, Height uint16 }
	theirLogOpts struct {
		Tail         int
		LimitBytes   int
		Timestamps   bool
		Follow       bool
		Previous     bool
		SinceSeconds int
		SinceTime    time.Time
	}
	theirStreams interface {
		Stdin() io.Reader
		Stdout() io.WriteCloser
		Stderr() io.WriteCloser
		TTY() bool
		Resize() <-chan theirSize
	}
	exitError int
)

func (e exitError) Error() string   { return fmt.Sprintf("exit code %d", int(e)) }
func (e exitError) ExitStatus() int { return int(e) }

// console is a provider with the methods for kubectl, and adapter the lines of docs/use/providers.md.
type console struct {
	*cloud
	logs theirLogOpts
}

func (c *console) GetContainerLogs(_ context.Context, _, _, container string, o theirLogOpts) (io.ReadCloser, error) {
	c.logs = o
	return io.NopCloser(strings.NewReader("log of " + container)), nil
}

func (c *console) RunInContainer(_ context.Context, _, pod, container string, command []string, s theirStreams) error {
	fmt.Fprintf(s.Stdout(), "%s/%s: %v", pod, container, command)
	if err := s.Stdout().Close(); err != nil || s.Stderr() != nil {
		return fmt.Errorf("close: %v, stderr %v", err, s.Stderr())
	}
	return fmt.Errorf("command: %w", exitError(7))
}

// AttachToContainer echoes a line, with the size of the terminal that it hears of then.
func (c *console) AttachToContainer(_ context.Context, _, _, _ string, s theirStreams) error {
	line := make([]byte, 5)
	if _, err := io.ReadFull(s.Stdin(), line); err != nil {
		return err
	}
	size, more := <-s.Resize()
	fmt.Fprintf(s.Stdout(), "%s %dx%d %t %t;", line, size.Width, size.Height, more, s.TTY())
	if _, more = <-s.Resize(); more {
		return errors.New("a size after the client has gone")
	}
	return nil
}

type adapter struct{ *console }

func (a adapter) GetContainerLogs(ctx context.Context, namespace, pod, container string, o ContainerLogOpts) (io.ReadCloser, error) {
	return a.console.GetContainerLogs(ctx, namespace, pod, container, theirLogOpts(o))
}

func (a adapter) RunInContainer(ctx context.Context, namespace, pod, container string, command []string, s AttachIO) error {
	return a.console.RunInContainer(ctx, namespace, pod, container, command, Attach[theirSize](ctx, s))
}

func (a adapter) AttachToContainer(ctx context.Context, namespace, pod, container string, s AttachIO) error {
	return a.console.AttachToContainer(ctx, namespace, pod, container, Attach[theirSize](ctx, s))
}

var consolePod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}

func TestAttach_PassesStreamsAndSizes(t *testing.T) {
	var out strings.Builder
	sizes := make(chan runtime.TerminalSize, 1)
	sizes <- runtime.TerminalSize{Width: 80, Height: 24}
	close(sizes) // the client has gone
	s := runtime.Streams{Stdin: strings.NewReader("hello"), Stdout: &out, TTY: true, Resize: sizes}
	if err := containersOf(adapter{&console{cloud: newCloud()}}).Attach(t.Context(), consolePod, "main", s); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "hello 80x24 true true;"; got != want {
		t.Errorf("the provider wrote %q, want %q", got, want)
	}
}

// A client that goes without closing its sizes must not keep a goroutine: its context ends.
func TestAttach_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := Attach[theirSize](ctx, attachIO(ctx, runtime.Streams{Resize: make(chan runtime.TerminalSize)}))
	cancel()
	if _, more := <-s.Resize(); more {
		t.Error("a size came, want the end of them")
	}
}

func TestExec_ReturnsTheExitCode(t *testing.T) {
	var out strings.Builder
	code, err := containersOf(adapter{&console{cloud: newCloud()}}).Exec(t.Context(), consolePod, "main", []string{"ls", "-l"}, runtime.Streams{Stdout: &out})
	if code != 7 || err != nil || out.String() != "web/main: [ls -l]" {
		t.Errorf("got exit code %d, %v and %q; want 7 and what the command wrote", code, err, out.String())
	}
}

func TestLogs_OptionsArePassed(t *testing.T) {
	provider := &console{cloud: newCloud()}
	lines, bytes, seconds := int64(10), int64(100), int64(60)
	log, err := containersOf(adapter{provider}).Logs(t.Context(), consolePod, "main", v1.PodLogOptions{TailLines: &lines, LimitBytes: &bytes, SinceSeconds: &seconds, Follow: true, Previous: true, Timestamps: true})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(log); string(text) != "log of main" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if want := (theirLogOpts{Tail: 10, LimitBytes: 100, SinceSeconds: 60, Follow: true, Previous: true, Timestamps: true}); provider.logs != want {
		t.Errorf("the provider got %+v, want %+v", provider.logs, want)
	}
}

// A provider without these methods serves none of them, and one that panics fails the request alone.
func TestStreams_OfOtherProviders(t *testing.T) {
	if c := containersOf(newCloud()); c.Logs != nil || c.Exec != nil || c.Attach != nil || c.PortForward != nil || c.Summary != nil {
		t.Errorf("got %+v of a provider without these methods", c)
	}
	broken := containersOf(adapter{}) // a nil provider behind the adapter
	if err := broken.Attach(t.Context(), consolePod, "main", runtime.Streams{}); err == nil || !strings.Contains(err.Error(), "panicked in AttachToContainer") {
		t.Errorf("got %v, want the panic as an error", err)
	}
}

// A method whose signature has types of another package would be ignored silently.
func TestOtherSignatures_AreNamedInTheLog(t *testing.T) {
	var log strings.Builder
	o := Options{NodeName: "n", Provider: &console{cloud: newCloud()}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	o.setDefaults()
	k, err := newKubelet(o, statustest.New().Client())
	if err != nil {
		t.Fatal(err)
	}
	k.warnOfSignatures()
	for _, method := range []string{"GetContainerLogs", "RunInContainer", "AttachToContainer"} {
		if !strings.Contains(log.String(), "method="+method) {
			t.Errorf("the log does not name %s:\n%s", method, log.String())
		}
	}
	if n := strings.Count(log.String(), "method="); n != 3 {
		t.Errorf("the log names %d methods, want 3:\n%s", n, log.String())
	}
}
