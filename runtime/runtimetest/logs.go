package runtimetest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/runtime"
)

// follow returns nil, and says so, if the runtime cannot follow a log.
func (f *fixture) follow(t *testing.T, ctx context.Context, id string, options runtime.LogOptions) io.ReadCloser {
	t.Helper()
	options.Follow = true
	logs, err := f.rt.Logs(ctx, id, options)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Log("not implemented: LogOptions.Follow; kubectl logs -f fails on such a node")
		return nil
	}
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
	return logs
}

func testFollow(t *testing.T, f *fixture) {
	pod := f.newPod("follow", `echo one; say written; hear; echo two; say written; hear; printf three`)
	id := f.start(t, pod)[0]
	logs := f.follow(t, t.Context(), id, runtime.LogOptions{})
	if logs == nil {
		return
	}
	lines := bufio.NewReader(logs)
	for _, want := range []string{"one\n", "two\n"} {
		f.expect(t, "written")
		if got, err := lines.ReadString('\n'); got != want || err != nil {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
		f.tell(t)
	}
	// The end of the container ends the log, with all that it wrote.
	rest, err := io.ReadAll(lines)
	if err := errors.Join(err, logs.Close()); err != nil || strings.TrimSuffix(string(rest), "\n") != "three" {
		t.Errorf("got %q, %v; want the last line", rest, err)
	}
	f.awaitExit(t, pod, id)
	again := f.follow(t, t.Context(), id, runtime.LogOptions{Tail: new(int64(2))})
	text, err := io.ReadAll(again)
	if err := errors.Join(err, again.Close()); err != nil || strings.TrimSuffix(string(text), "\n") != "two\nthree" {
		t.Errorf("after the end: got %q, %v; want the last two lines", text, err)
	}
}

func testFollowEndsWithItsContext(t *testing.T, f *fixture) {
	pod := f.newPod("follow", `say ready; hear`)
	id := f.start(t, pod)[0]
	f.expect(t, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	logs := f.follow(t, ctx, id, runtime.LogOptions{})
	if logs == nil {
		cancel()
		return
	}
	go cancel() // before or during the read
	if text, err := io.ReadAll(logs); !errors.Is(err, context.Canceled) || len(text) > 0 {
		t.Errorf("got %q, %v; want %v", text, err, context.Canceled)
	}
	if err := logs.Close(); err != nil {
		t.Error(err)
	}
}

func testLogSelections(t *testing.T, f *fixture) {
	pod := f.newPod("select", `echo one; echo two >&2; say written; hear; echo three`)
	id := f.start(t, pod)[0]
	f.expect(t, "written")
	// When the two are in the log, with their times, the third cannot have an earlier one.
	for strings.Count(f.output(t, id, runtime.LogOptions{}), "\n") < 2 {
	}
	since := time.Now()
	f.tell(t)
	f.awaitExit(t, pod, id)
	for _, c := range []struct {
		story   string
		options runtime.LogOptions
		want    string
	}{
		{"stdout", runtime.LogOptions{Stream: runtime.Stdout}, "one\nthree\n"},
		{"stderr", runtime.LogOptions{Stream: runtime.Stderr}, "two\n"},
		{"the last line of stdout", runtime.LogOptions{Stream: runtime.Stdout, Tail: new(int64(1))}, "three\n"},
		{"no lines", runtime.LogOptions{Tail: new(int64(0))}, ""},
		{"since", runtime.LogOptions{Since: since}, "three\n"},
		{"some bytes", runtime.LogOptions{Stream: runtime.Stdout, LimitBytes: 6}, "one\nth"},
	} {
		if got := f.output(t, id, c.options); got != c.want {
			t.Errorf("%s: got %q, want %q", c.story, got, c.want)
		}
	}
}

// Lines of megabytes and bytes that are no text come out as they went in.
func testLogsOfAnyBytes(t *testing.T, f *fixture) {
	pod := f.newPod("binary", `printf '\001\000\377\r\n'; head -c 3000000 /dev/zero; echo; echo end`)
	first := "\x01\x00\xff\r\n"
	if f.config.DropsCarriageReturns {
		first = "\x01\x00\xff\n"
	}
	f.expectOutput(t, pod, first+strings.Repeat("\x00", 3000000)+"\nend\n")
}
