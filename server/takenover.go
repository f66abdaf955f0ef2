package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// takenOver is a response whose connection can be taken over. net/http does not watch such a connection: here its
// reader does, since both protocols read all the time, and the end of the connection is the end of the request.
type takenOver struct {
	http.ResponseWriter
	gone func()

	mu   sync.Mutex // guards conn
	conn net.Conn
}

// Hijack implements [http.Hijacker].
func (t *takenOver) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	hijacker, ok := t.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, errNotHijacked
	}
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		return nil, nil, err
	}
	watched := &watchedConn{Conn: conn, gone: t.gone}
	t.mu.Lock()
	t.conn = conn
	t.mu.Unlock()
	first, err := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	rest := io.MultiReader(bytes.NewReader(bytes.Clone(first)), watched)
	return watched, bufio.NewReadWriter(bufio.NewReader(rest), bufio.NewWriter(watched)), nil
}

// close closes the connection, whatever the protocol has done: one that waits for streams that never come does not.
func (t *takenOver) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		_ = t.conn.Close()
	}
}

// watchedConn calls gone when it cannot be read any more.
type watchedConn struct {
	net.Conn
	gone func()
}

func (w *watchedConn) Read(into []byte) (int, error) {
	n, err := w.Conn.Read(into)
	if err != nil {
		w.gone()
	}
	return n, err
}

// forwarder connects the streams of one client to ports of a pod. The protocol gives its calls no context that ends:
// they get that of the request.
type forwarder struct {
	ctx      context.Context
	streamer runtime.Streamer
	uid      types.UID
	calls    calls
}

// PortForward implements [portforward.PortForwarder].
func (f *forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	if !f.calls.begin() {
		return net.ErrClosed
	}
	defer f.calls.end()
	return f.streamer.PortForward(f.ctx, f.uid, port, stream)
}
