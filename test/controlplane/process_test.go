package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// impostor is a Process whose server is a script: for ends that the real server does not come to.
func impostor(t *testing.T, script string) *Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "controlplane")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := &Process{binary: path, options: Options{DataDir: t.TempDir()}}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func TestServerThatEndsByItselfIsNoticed(t *testing.T) {
	p := impostor(t, `echo ready; read end < "$2/end"; exit 7`)
	end := filepath.Join(p.DataDir(), "end")
	if err := unix.Mkfifo(end, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatalf("start: %v", err)
	}
	if err := os.WriteFile(end, []byte("now\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if err := p.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "ended by itself: exit status 7") {
		t.Errorf("stop: got %v, want an error that says how it ended", err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("second stop: got %v, want a no-op", err)
	}
}

// A server that ended right after it was ready has started: it is Exited and Stop that say the rest.
func TestServerThatEndsRightAfterItWasReadyHasStarted(t *testing.T) {
	for range 20 { // the end and the readiness may be seen in any order
		p := impostor(t, "echo ready; exit 7")
		if err := p.Restart(t.Context()); err != nil {
			t.Fatalf("start: %v", err)
		}
		<-p.Exited()
	}
}

func TestServerThatDoesNotStopIsKilled(t *testing.T) {
	p := impostor(t, "trap '' TERM; echo ready; exec sleep 600")
	if err := p.Restart(t.Context()); err != nil {
		t.Fatalf("start: %v", err)
	}
	exited := p.Exited()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stop: got %v, want context.Canceled", err)
	}
	<-exited
}

func TestServerThatDoesNotStartShowsItsWordsAndTheEndOfItsLog(t *testing.T) {
	p := impostor(t, `echo "cause in the log" >> "$2/controlplane.log"; echo "controlplane: it is broken" >&2; exit 1`)
	earlier := filepath.Join(p.DataDir(), "controlplane.log")
	if err := os.WriteFile(earlier, []byte("from an earlier start\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := p.Restart(t.Context())
	if err == nil {
		t.Fatal("a server that ended was taken for ready")
	}
	for _, want := range []string{"it is broken", "cause in the log"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not mention %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "earlier start") {
		t.Errorf("error %q shows the log of an earlier start", err)
	}
}
