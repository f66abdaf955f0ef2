package kubeletapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/statusd/statusd/runtime"
)

// followed is a log of one line that goes on until its context ends.
type followed struct {
	io.Reader
	ctx   context.Context
	ended chan<- error
}

func (f *followed) Read(into []byte) (int, error) {
	if n, err := f.Reader.Read(into); err == nil {
		return n, nil
	}
	<-f.ctx.Done()
	return 0, f.ctx.Err()
}

func (f *followed) Close() error {
	f.ended <- f.ctx.Err()
	return nil
}

// A line is delivered while the log goes on, and the log ends when its client leaves, over both versions of HTTP.
func TestAFollowedLogIsDeliveredAsItGrowsAndEndsWithItsClient(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint("HTTP/", version), func(t *testing.T) {
			ended := make(chan error, 1)
			rt := newFakeRuntime()
			rt.logs = func(ctx context.Context, options runtime.LogOptions) (io.ReadCloser, error) {
				if !options.Follow || options.Tail == nil || *options.Tail != 3 {
					t.Errorf("options %+v", options)
				}
				line, write := io.Pipe()
				go func() { fmt.Fprintln(write, "a line"); write.Close() }()
				return &followed{line, ctx, ended}, nil
			}
			s := web(t, rt)
			client := s.http(t)
			if version == 1 {
				client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
			}
			ctx, leave := context.WithCancel(t.Context())
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+"/containerLogs/default/web/main?follow=true&tailLines=3", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.ProtoMajor != version {
				t.Errorf("spoke %s", response.Proto)
			}
			if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || line != "a line\n" {
				t.Errorf("got %q, %v", line, err)
			}
			leave()
			if err := <-ended; err == nil {
				t.Error("the log ended before its client left")
			}
		})
	}
}

func TestALogThatTheRuntimeDoesNotHaveIsExplained(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("log: %w", runtime.ErrNotFound), "unable to retrieve container logs for "},
		{fmt.Errorf("the disk is gone"), "the disk is gone"},
	} {
		rt := newFakeRuntime()
		rt.logs = func(context.Context, runtime.LogOptions) (io.ReadCloser, error) { return nil, c.err }
		if status, body := web(t, rt).get(t, "/containerLogs/default/web/main"); status != http.StatusBadRequest || len(body) < len(c.want) || body[:len(c.want)] != c.want {
			t.Errorf("%v: got %d %q", c.err, status, body)
		}
	}
}
