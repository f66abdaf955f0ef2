package runtimememory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/runtime"
)

func read(t *testing.T, l *Log, options runtime.LogOptions) string {
	t.Helper()
	text, err := io.ReadAll(l.Open(t.Context(), options))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSelections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Log
		stdout, stderr := l.Stream(runtime.Stdout), l.Stream(runtime.Stderr)
		long := strings.Repeat("x", 2*maxEntryBytes+5)
		fmt.Fprint(stdout, "one\nt")
		time.Sleep(time.Second)
		fmt.Fprint(stderr, "error\n")
		fmt.Fprint(stdout, "wo\n"+long+"\nlast")
		second := time.Now()
		for _, c := range []struct {
			story   string
			options runtime.LogOptions
			want    string
		}{
			{"all", runtime.LogOptions{}, "one\nerror\ntwo\n" + long + "\nlast"},
			{"no lines", runtime.LogOptions{Tail: new(int64(0))}, ""},
			{"a long line is one", runtime.LogOptions{Tail: new(int64(2)), Stream: runtime.Stdout}, long + "\nlast"},
			{"stderr", runtime.LogOptions{Stream: runtime.Stderr}, "error\n"},
			{"since", runtime.LogOptions{Since: second, Stream: runtime.Stderr}, "error\n"},
			{"since later", runtime.LogOptions{Since: second.Add(1), Stream: runtime.Stderr}, ""},
			{"bytes", runtime.LogOptions{LimitBytes: 5}, "one\ne"},
			{"times", runtime.LogOptions{Timestamps: true, Stream: runtime.Stderr}, second.UTC().Format(time.RFC3339Nano) + " error\n"},
		} {
			if got := read(t, &l, c.options); got != c.want {
				t.Errorf("%s: got %.60q, want %.60q", c.story, got, c.want)
			}
		}
	})
}

func TestALogIsFollowedToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Log
		stdout := l.Stream(runtime.Stdout)
		fmt.Fprintln(stdout, "before")
		var got []byte
		done := make(chan error, 1)
		go func() {
			var err error
			got, err = io.ReadAll(l.Open(t.Context(), runtime.LogOptions{Follow: true}))
			done <- err
		}()
		for i := range 3 {
			synctest.Wait()
			fmt.Fprintln(stdout, i)
		}
		fmt.Fprint(stdout, "rest")
		l.End()
		if err := <-done; err != nil || string(got) != "before\n0\n1\n2\nrest\n" {
			t.Errorf("got %q, %v; want all lines", got, err)
		}
		if got := read(t, &l, runtime.LogOptions{Follow: true, Tail: new(int64(1))}); got != "rest\n" {
			t.Errorf("after the end: got %q, want the last line", got)
		}
	})
}

func TestFollowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Log
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := io.ReadAll(l.Open(ctx, runtime.LogOptions{Follow: true})); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func TestTheEndOfALogIsKept(t *testing.T) {
	var l Log
	for i := range 3 * maxEntries {
		fmt.Fprintln(l.Stream(runtime.Stdout), i)
	}
	if got := read(t, &l, runtime.LogOptions{}); strings.Count(got, "\n") != maxEntries || !strings.HasSuffix(got, fmt.Sprintln(3*maxEntries-1)) {
		t.Errorf("got %d lines, want the last %d", strings.Count(got, "\n"), maxEntries)
	}
	l.Remove()
	if got := read(t, &l, runtime.LogOptions{}); got != "" {
		t.Errorf("got %.40q after the removal", got)
	}
}
