package process

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/statusd/statusd/runtime"
)

// Clients of a runtime stay connected while another one takes the directory over: their commands end with their own exit code, logs
// that are followed end with the container, and nothing of the directory is let go.
func TestFormer_ClientsStayConnected(t *testing.T) {
	h := newHost(t)
	h.options.Dir = h.dir
	former, err := New(h.options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- former.Run(ctx) }()
	h.Runtime = former
	id := h.start(t, scriptPod("pod", "echo line; exec sleep 100000"))
	release := filepath.Join(t.TempDir(), "release")
	out := &noticed{first: make(chan struct{})}
	type result struct {
		code int
		err  error
	}
	executed := make(chan result, 1)
	go func() {
		code, err := former.ExecStream(t.Context(), id, sh("echo began; while [ ! -e "+release+" ]; do sleep 0.05; done; exit 7"), runtime.Streams{Stdout: out})
		executed <- result{code, err}
	}()
	<-out.first
	log, err := former.Logs(t.Context(), id, runtime.LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := io.ReadFull(log, make([]byte, len("line\n"))); err != nil {
		t.Fatal(err)
	}

	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	h.options.Former = former
	h.open(t)
	if _, err := New(h.options); err == nil {
		t.Error("a runtime is taken over twice")
	}
	h.options.Former = nil
	if err := former.Close(); err != nil {
		t.Error(err)
	}
	if _, err := New(h.options); err == nil {
		t.Error("the former runtime has let go of the directory")
	}
	select {
	case got := <-executed:
		t.Fatalf("the command ended with the runtime: %+v", got)
	default:
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-executed; got.code != 7 || got.err != nil {
		t.Errorf("got %+v, want the exit code of the command", got)
	}
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(log); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v; want the end of the log", rest, err)
	}
}
