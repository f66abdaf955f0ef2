package kubeletapi

import (
	"net"
	"testing"

	"github.com/statusd/statusd/test/patience"
)

// A client says that it goes, and sends more than buffers hold behind that. Its protocol has closed the connection and reads no more: the end of the
// connection is noticed all the same.
func TestWatchedConn_ClosedByItsProtocol_NoticesTheEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		defer client.Close()
		_, _ = client.Write(make([]byte, 64<<20))
	}()
	gone := make(chan struct{})
	w := newWatchedConn(server, func() { close(gone) })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := patience.Context(t)
	defer cancel()
	select {
	case <-gone:
	case <-ctx.Done():
		server.Close() // lets the client go
		t.Error("the end of the connection was not noticed")
	}
	<-sent
	<-w.drained
}
