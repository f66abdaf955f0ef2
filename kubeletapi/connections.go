package kubeletapi

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

const (
	// maxConnections bounds what the server takes of the process's file descriptors.
	maxConnections = 2048
	// maxUnknown bounds the connections of clients that have not been authenticated: every host that reaches this one can
	// connect. Beyond it the oldest one goes, so that a client with credentials, which shows them at once, gets in.
	maxUnknown = 256
)

// connections is a listener that limits the connections that are open.
type connections struct {
	net.Listener

	mu      sync.Mutex // guards what follows
	open    map[*connection]struct{}
	unknown *list.List // of *connection, the oldest first
}

func newConnections(listener net.Listener) *connections {
	return &connections{Listener: listener, open: map[*connection]struct{}{}, unknown: list.New()}
}

// connection is a connection that counts until it is closed.
type connection struct {
	net.Conn
	of      *connections
	element *list.Element // in unknown, nil: not any more; guarded by of.mu
}

type connectionKey struct{}

// Accept returns the next connection. Connections beyond the limit are closed immediately.
func (c *connections) Accept() (net.Conn, error) {
	for {
		accepted, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		added, victim := c.add(accepted)
		if victim != nil {
			_ = victim.Close()
		}
		if added != nil {
			return added, nil
		}
		_ = accepted.Close()
	}
}

// add returns the counted connection, or nil if authenticated clients take all places, and the connection to
// close for it.
func (c *connections) add(accepted net.Conn) (added, victim *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unknown.Len() >= maxUnknown || len(c.open) >= maxConnections {
		oldest := c.unknown.Front()
		if oldest == nil {
			return nil, nil
		}
		victim = oldest.Value.(*connection)
		c.forget(victim)
	}
	added = &connection{Conn: accepted, of: c}
	added.element = c.unknown.PushBack(added)
	c.open[added] = struct{}{}
	return added, victim
}

// forget is called with the lock held.
func (c *connections) forget(one *connection) {
	delete(c.open, one)
	if one.element != nil {
		c.unknown.Remove(one.element)
		one.element = nil
	}
}

func (one *connection) Close() error {
	one.of.mu.Lock()
	one.of.forget(one)
	one.of.mu.Unlock()
	return one.Conn.Close()
}

// closeAll closes what is left when the server has ended: connections that streams have taken over.
func (c *connections) closeAll() {
	c.mu.Lock()
	var left []*connection
	for one := range c.open {
		left = append(left, one)
	}
	c.mu.Unlock()
	for _, one := range left {
		_ = one.Close()
	}
}

// context lets a request find its connection.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = wrapped.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// trust marks the connection of a request as one of a known client.
func trust(request *http.Request) {
	one, ok := request.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	if one.element != nil {
		one.of.unknown.Remove(one.element)
		one.element = nil
	}
}

var errNotHijacked = errors.New("server: connection cannot be taken over")
