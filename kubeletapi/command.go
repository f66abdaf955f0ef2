package kubeletapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/exec"
)

// streamsTimeout is how long a client may take to open its streams.
const streamsTimeout = 10 * time.Second

// channels are the streams of one client: the requested streams, a stream for the final status, and a stream for the
// sizes of the terminal, or nil without a terminal.
type channels struct {
	stdin          io.Reader
	stdout, stderr io.WriteCloser
	status         io.Writer
	resize         io.Reader
	close          func() error // closes all of them once everything is written
}

// serveCommand serves a client of a command, or an attached one. k8s.io/cri-streaming speaks the protocols of older clients. Those of
// today's are here: for WebSocket since it does not know that one, for SPDY since it keeps the connection and a goroutine of
// a client that leaves before it has opened its streams.
func serveCommand(w http.ResponseWriter, request *http.Request, e *executor) {
	switch {
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(request):
		serveWebSocket(w, request, e)
	case !wsstream.IsWebSocketRequest(request) && offers(request, remotecommand.StreamProtocolV4Name):
		serveSPDY(w, request, e)
	case e.attach:
		remotecommand.ServeAttach(w, request, e, "", "", "", &e.options, streamIdle, streamsTimeout, remotecommand.SupportedStreamingProtocols)
	default:
		remotecommand.ServeExec(w, request, e, "", "", "", e.command, &e.options, streamIdle, streamsTimeout, remotecommand.SupportedStreamingProtocols)
	}
}

// offers reports whether the client speaks a protocol of SPDY.
func offers(request *http.Request, protocol string) bool {
	return slices.ContainsFunc(request.Header.Values(httpstream.HeaderProtocolVersion), func(header string) bool {
		return slices.Contains(strings.Split(strings.ReplaceAll(header, " ", ""), ","), protocol)
	})
}

// serve connects the client to its command and says at the end how that went. When the server stops, the client has its answer
// before the command is killed: clients take a connection that ends without one for success, and a kill can take longer than the
// server waits.
func (e *executor) serve(ctx context.Context, c channels) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var answered sync.Once
	answer := func(err error) { answered.Do(func() { e.answer(c, err) }) }
	defer context.AfterFunc(ctx, func() {
		if err := whyEnded(ctx, nil); err != nil {
			answer(err)
			_ = c.close() // the client may have gone
		}
	})()
	var sizes chan remotecommand.TerminalSize
	if c.resize != nil {
		sizes = make(chan remotecommand.TerminalSize)
		go decodeSizes(ctx, c.resize, sizes)
	}
	var err error
	if e.attach {
		err = e.AttachContainer(ctx, "", "", "", c.stdin, c.stdout, c.stderr, e.options.TTY, sizes)
	} else {
		err = e.ExecInContainer(ctx, "", "", "", e.command, c.stdin, c.stdout, c.stderr, e.options.TTY, sizes, 0)
	}
	answer(err)
}

// answer writes how a command has ended.
func (e *executor) answer(c channels, err error) {
	status, _ := json.Marshal(commandStatus(err, e.attach)) // of plain data
	_, _ = c.status.Write(status)                           // the client may have gone
}

// decodeSizes delivers what the client says of its terminal until one of the two ends.
func decodeSizes(ctx context.Context, from io.Reader, to chan<- remotecommand.TerminalSize) {
	defer close(to)
	for decoder := json.NewDecoder(from); ; {
		var size remotecommand.TerminalSize
		if err := decoder.Decode(&size); err != nil {
			return
		}
		select {
		case to <- size:
		case <-ctx.Done():
			return
		}
	}
}

// commandStatus is how a command has ended, as clients read it.
func commandStatus(err error, attach bool) metav1.Status {
	if err == nil {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	if exit, ok := err.(exec.ExitError); ok && exit.Exited() {
		return metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: fmt.Sprintf("command terminated with non-zero exit code: %v", err),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(exit.ExitStatus())}}},
		}
	}
	what := "executing command in"
	if attach {
		what = "attaching to"
	}
	return metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: http.StatusInternalServerError,
		Message: fmt.Sprintf("Internal error occurred: error %s container: %v", what, err),
	}
}
