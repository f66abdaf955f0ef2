package probe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/httpget"
	"github.com/statusd/statusd/runtime"
)

// maxBodyBytes bounds how much of a response body is read, as exec output is bounded.
const maxBodyBytes = runtime.MaxExecOutputBytes

// question is one probe, to be carried out within the timeout.
type question struct {
	handler     *v1.ProbeHandler
	container   *v1.Container
	containerID string
	podIP       string
	timeout     time.Duration
}

// answer is its outcome.
type answer struct {
	result  result
	message string
	// warning means that the message of a success is worth an event.
	warning bool
}

func succeeded(message string) answer { return answer{result: success, message: message} }

func failed(format string, args ...any) answer {
	return answer{result: failure, message: fmt.Sprintf(format, args...)}
}

// undone is a probe that could not be carried out, which is not the container's fault.
func undone(err error) answer { return answer{message: err.Error()} }

// checker carries probes out.
type checker struct {
	exec      func(ctx context.Context, containerID string, command []string) (runtime.ExecResult, error)
	transport http.RoundTripper
	userAgent string
}

func newChecker(exec func(context.Context, string, []string) (runtime.ExecResult, error), version string) *checker {
	return &checker{exec: exec, transport: newTransport(), userAgent: httpget.UserAgent("probe", version)}
}

func (c *checker) check(ctx context.Context, q question) answer {
	h := q.handler
	if h.HTTPGet != nil {
		return c.checkHTTP(ctx, q, h.HTTPGet) // its client has the timeout, and names it in its error
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	switch {
	case h.Exec != nil:
		return c.checkExec(ctx, q, h.Exec)
	case h.TCPSocket != nil:
		return checkTCP(ctx, q, h.TCPSocket)
	case h.GRPC != nil:
		return c.checkGRPC(ctx, q, h.GRPC)
	}
	return undone(fmt.Errorf("the probe of container %s has no handler: set exec, httpGet, tcpSocket or grpc", q.container.Name))
}

// dial opens a connection that lingers for one second at most after it was closed. Otherwise
// the ports of a busy node could run out (kubernetes #89898).
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// The connection works without the option, too.
		_ = tcp.SetLinger(1)
	}
	return conn, nil
}
