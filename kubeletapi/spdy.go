package kubeletapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// errUnexpectedStream refuses a stream that the request has not asked for.
var errUnexpectedStream = errors.New("unexpected stream")

// errNoStreamsCame is the end of a command that was not started.
var errNoStreamsCame = errors.New("the client has not opened all of its streams")

// opened is a stream that a client has opened. It may be used once the client knows that it was accepted.
type opened struct {
	httpstream.Stream
	accepted <-chan struct{}
}

// serveSPDY speaks v4.channel.k8s.io over SPDY/3.1: one stream for each of those the request asks for, named in its headers.
func serveSPDY(w http.ResponseWriter, request *http.Request, e *executor) {
	if _, err := httpstream.Handshake(request, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return // the client has its answer
	}
	streams, all := make(chan opened), make(chan struct{})
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, request, func(stream httpstream.Stream, accepted <-chan struct{}) error {
		select {
		case streams <- opened{stream, accepted}:
			return nil
		case <-all:
			return errUnexpectedStream
		}
	})
	if conn == nil {
		return // the client has its answer
	}
	defer conn.Close()
	conn.SetIdleTimeout(streamIdle)
	c, ok := e.collect(request.Context(), streams)
	c.close = conn.Close
	close(all)
	switch {
	case ok:
		e.serve(request.Context(), c)
	case c.status != nil: // the client may take the end of the connection for the end of its command
		e.answer(c, whyEnded(request.Context(), errNoStreamsCame))
	}
}

// collect waits for the streams of the client, and reports whether all came.
func (e *executor) collect(ctx context.Context, from <-chan opened) (c channels, ok bool) {
	missing := map[string]bool{remotecommand.StreamTypeError: true}
	for name, wanted := range map[string]bool{
		remotecommand.StreamTypeStdin: e.options.Stdin, remotecommand.StreamTypeStdout: e.options.Stdout,
		remotecommand.StreamTypeStderr: e.options.Stderr, remotecommand.StreamTypeResize: e.options.TTY,
	} {
		if wanted {
			missing[name] = true
		}
	}
	timeout := time.NewTimer(streamsTimeout)
	defer timeout.Stop()
	var accepted []<-chan struct{}
	for len(missing) > 0 {
		select {
		case <-ctx.Done():
			return c, false
		case <-timeout.C:
			return c, false
		case stream := <-from:
			name := stream.Headers().Get(remotecommand.StreamType)
			if !missing[name] {
				_ = stream.Reset() // the client sees it
				continue
			}
			delete(missing, name)
			accepted = append(accepted, stream.accepted)
			c.add(name, stream)
		}
	}
	for _, one := range accepted {
		select {
		case <-ctx.Done():
			return c, false
		case <-one:
		}
	}
	return c, true
}

func (c *channels) add(name string, stream httpstream.Stream) {
	switch name {
	case remotecommand.StreamTypeError:
		c.status = stream
	case remotecommand.StreamTypeStdin:
		c.stdin = stream
	case remotecommand.StreamTypeStdout:
		c.stdout = stream
	case remotecommand.StreamTypeStderr:
		c.stderr = stream
	case remotecommand.StreamTypeResize:
		c.resize = stream
	}
}
