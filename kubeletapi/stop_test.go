package kubeletapi_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/tools/remotecommand"

	"github.com/statusd/statusd/runtime"
)

// A client of a command that the server kills when it stops must not take the end for success: kubectl exec backup && rm old would
// go on after half a backup. The kill may take longer than the server waits: here it ends after the client.
func TestStop_FailsTheCommandsOfClients(t *testing.T) {
	for name, newExecutor := range protocols {
		for path, what := range map[string]string{execPath: "exec", "/attach/default/web/main?input=1&output=1&error=1": "attach"} {
			t.Run(name+" "+what, func(t *testing.T) {
				rt, began, killed := newFakeRuntime(), make(chan struct{}, 1), make(chan struct{})
				rt.exec = func(ctx context.Context, _ []string, streams runtime.Streams) (int, error) {
					began <- struct{}{}
					<-ctx.Done()
					<-killed
					return 0, ctx.Err()
				}
				rt.attach = func(ctx context.Context, streams runtime.Streams) error {
					began <- struct{}{}
					<-ctx.Done()
					<-killed
					return ctx.Err()
				}
				s := web(t, rt)
				executor, err := newExecutor(s.client, "https://"+s.address+path)
				if err != nil {
					t.Fatal(err)
				}
				stdin, typed := io.Pipe() // what the command does not read must not cost the client its answer
				defer typed.Close()
				go func() { _, _ = typed.Write(make([]byte, 4096)) }()
				ended := make(chan error, 1)
				go func() {
					var out, errs safeBuffer
					ended <- executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: stdin, Stdout: &out, Stderr: &errs})
				}()
				<-began
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					s.stop()
				}()
				err = <-ended
				stdin.Close()
				close(killed)
				<-stopped
				if why := "stopping"; err == nil || (name != "WebSocket of before" && !strings.Contains(err.Error(), why)) {
					t.Errorf("got %v, want an error that says that the server was %s", err, why)
				}
			})
		}
	}
}

// A log that is followed ends with an error when the server stops, as there may be more of it.
func TestStop_CutsAFollowedLog(t *testing.T) {
	rt, ended := newFakeRuntime(), make(chan error, 1)
	rt.logs = func(ctx context.Context, _ runtime.LogOptions) (io.ReadCloser, error) {
		return &followed{strings.NewReader("a line\n"), ctx, ended}, nil
	}
	s := web(t, rt)
	client := s.http(t)
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = false // which is how API servers speak to nodes
	response, err := client.Get("https://" + s.address + "/containerLogs/default/web/main?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadFull(response.Body, make([]byte, len("a line\n"))); err != nil {
		t.Fatal(err)
	}
	s.stop()
	if rest, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("got %q and no error, want that the log is cut", rest)
	}
	<-ended
}
