package kubeletapi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// takenOver is a response whose connection can be taken over. net/http does not watch such a connection: here its
// reader does, since both protocols read all the time, and the end of the connection is the end of the request.
type takenOver struct {
	http.ResponseWriter
	gone func()

	mu    sync.Mutex // guards what follows; set once the connection was taken over
	conn  *watchedConn
	over  chan struct{} // closed when the request is over
	watch chan struct{} // closed when the watch has ended
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
	watched := newWatchedConn(conn, t.gone)
	t.mu.Lock()
	t.conn, t.over, t.watch = watched, make(chan struct{}), make(chan struct{})
	t.mu.Unlock()
	go func() {
		defer close(t.watch)
		watchPeer(conn, t.over, t.gone)
	}()
	first, err := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err != nil {
		return nil, nil, err
	}
	rest := io.MultiReader(bytes.NewReader(bytes.Clone(first)), watched) // the buffer is used again
	return watched, bufio.NewReadWriter(bufio.NewReader(rest), bufio.NewWriter(watched)), nil
}

// linger is how long a client may take to read the end of its streams and close the connection.
const linger = time.Second

// close closes the connection, even if the protocol does not: a protocol may wait for streams that never come.
// Data of the client that was not read would make the kernel reset the connection, and what the client has not read
// yet, such as the exit code, would be lost: so the client closes first, if it does so soon.
func (t *takenOver) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		return
	}
	_ = t.conn.Close()
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-t.conn.ended:
	case <-timer.C:
	}
	_ = t.conn.Conn.Close()
	<-t.conn.drained
	close(t.over)
	<-t.watch
}

// watchedConn calls gone when it cannot be read any more. To close it ends what is written only.
type watchedConn struct {
	net.Conn
	gone    func()
	ended   chan struct{} // closed when it cannot be read any more
	drained chan struct{} // closed after Close, when it cannot be read any more
	reading sync.Once
	writing sync.Once
}

func newWatchedConn(conn net.Conn, gone func()) *watchedConn {
	return &watchedConn{Conn: conn, gone: gone, ended: make(chan struct{}), drained: make(chan struct{})}
}

func (w *watchedConn) Read(into []byte) (int, error) {
	n, err := w.Conn.Read(into)
	if err != nil {
		w.gone()
		w.reading.Do(func() { close(w.ended) })
	}
	return n, err
}

func (w *watchedConn) Close() error {
	w.writing.Do(func() {
		if half, ok := w.Conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the client may have gone
		}
		go w.drain()
	})
	return nil
}

// drain reads what the client still sends. A protocol reads no more once the client has said that it goes; the end of the connection comes
// behind what the client has sent after that, and would never arrive.
func (w *watchedConn) drain() {
	defer close(w.drained)
	_, _ = io.Copy(io.Discard, w)
}

// forwarder connects the streams of one client to ports of a pod. The protocol's calls have no context that ends:
// they use the context of the request.
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
