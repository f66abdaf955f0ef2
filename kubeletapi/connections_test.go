package kubeletapi

import (
	"net"
	"net/http"
	"testing"
)

// pipes is a listener of connections in memory.
type pipes struct{ accepted chan net.Conn }

func (p pipes) Accept() (net.Conn, error) { return <-p.accepted, nil }
func (p pipes) Close() error              { return nil }
func (p pipes) Addr() net.Addr            { return &net.TCPAddr{} }

func TestClientsWithoutCredentialsCannotTakeAllConnections(t *testing.T) {
	listener := pipes{make(chan net.Conn, 1)}
	c := newConnections(listener)
	connect := func() (client net.Conn, server net.Conn) {
		t.Helper()
		client, other := net.Pipe()
		listener.accepted <- other
		server, err := c.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	_, known := connect()
	request, err := http.NewRequest(http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	trust(request.WithContext(c.context(t.Context(), known)))
	for range 3 * maxUnknown {
		connect()
	}
	if n := c.unknown.Len(); n != maxUnknown {
		t.Errorf("%d connections of unknown clients, want %d", n, maxUnknown)
	}
	if len(c.open) != maxUnknown+1 {
		t.Errorf("%d connections are open, want %d: the known one stays", len(c.open), maxUnknown+1)
	}
	if _, stays := c.open[known.(*connection)]; !stays {
		t.Error("the connection of a known client has made room for unknown ones")
	}
	c.closeAll()
	if len(c.open) != 0 || c.unknown.Len() != 0 {
		t.Errorf("after the end %d are open, %d unknown", len(c.open), c.unknown.Len())
	}
}

func TestBeyondTheLimitAConnectionIsClosed(t *testing.T) {
	listener := pipes{make(chan net.Conn, 2)}
	c := newConnections(listener)
	for range maxConnections {
		_, other := net.Pipe()
		listener.accepted <- other
		server, err := c.Accept()
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequest(http.MethodGet, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		trust(request.WithContext(c.context(t.Context(), server)))
	}
	client, other := net.Pipe()
	if added, victim := c.add(other); added != nil || victim != nil {
		t.Error("a connection beyond the limit was taken")
	}
	_ = client.Close()
	c.closeAll()
}
