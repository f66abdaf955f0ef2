package process

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// MaxConnections bounds the endpoints' share of the process's file descriptors: every local user
// can connect, and for an observer each pod of the cluster.
const MaxConnections = 256

// crowd is a listener that accepts every client: when all places are taken, a new connection displaces a connection of the
// client with the most connections, an idle one first, and the oldest of the idle ones. A probe or a scrape sends its request
// at once and is answered quickly, so it does not lose its place to thousands of silent or slow connections.
type crowd struct {
	net.Listener

	mu     sync.Mutex // guards guests and their fields
	guests map[*guest]struct{}
}

// guest is one connection.
type guest struct {
	net.Conn
	of     *crowd
	peer   string
	asks   bool      // a request is being answered
	stays  bool      // the request is a watch; the server limits watches separately
	since  time.Time // when asks last changed
	closed sync.Once
}

func newCrowd(listener net.Listener) *crowd {
	return &crowd{Listener: listener, guests: map[*guest]struct{}{}}
}

// Accept returns the next connection, and closes another one if there are too many.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	added, victim := c.add(conn)
	if victim != nil {
		_ = victim.Close()
	}
	return added, nil
}

func (c *crowd) add(conn net.Conn) (added, victim *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.guests) >= MaxConnections {
		if victim = c.victim(); victim != nil {
			delete(c.guests, victim)
		}
	}
	added = &guest{Conn: conn, of: c, peer: peerOf(conn), since: time.Now()}
	c.guests[added] = struct{}{}
	return added, victim
}

// victim returns the connection to close. The caller holds mu.
func (c *crowd) victim() (worst *guest) {
	counts := map[string]int{}
	for g := range c.guests {
		if !g.stays {
			counts[g.peer]++
		}
	}
	for g := range c.guests {
		if !g.stays && (worst == nil || g.goesBefore(worst, counts)) {
			worst = g
		}
	}
	return worst
}

func (g *guest) goesBefore(other *guest, counts map[string]int) bool {
	switch {
	case counts[g.peer] != counts[other.peer]:
		return counts[g.peer] > counts[other.peer]
	case g.asks != other.asks:
		return other.asks
	}
	return g.since.Before(other.since)
}

// peerOf is the address of the client without its port; empty for a Unix socket.
func peerOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return ""
	}
	return host
}

func (g *guest) Close() (err error) {
	g.closed.Do(func() {
		g.of.mu.Lock()
		delete(g.of.guests, g)
		g.of.mu.Unlock()
		err = g.Conn.Close()
	})
	return err
}

// state is for [http.Server.ConnState].
func (c *crowd) state(conn net.Conn, state http.ConnState) {
	g, ok := conn.(*guest)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g.asks, g.since = state == http.StateActive, time.Now()
}

type guestKey struct{}

// context is for [http.Server.ConnContext].
func (c *crowd) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, conn)
}

// staying lets a request keep its connection for as long as it lasts.
func staying(w http.ResponseWriter, r *http.Request, serve http.Handler) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
		g.stay(true)
		defer g.stay(false)
	}
	serve.ServeHTTP(w, r)
}

func (g *guest) stay(stays bool) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.stays = stays
}
