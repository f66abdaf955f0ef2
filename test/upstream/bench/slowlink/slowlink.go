// Package slowlink is a TCP proxy that adds latency: bytes read on one end are written on the other
// after a delay, in order. It limits neither bandwidth nor the amount of data in flight.
//
// Listen starts it and Close ends it, with all its connections and goroutines. Both may be
// called from any goroutine.
package slowlink

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Link is a proxy in front of one address.
type Link struct {
	listener net.Listener
	target   string
	delay    time.Duration
	wg       sync.WaitGroup

	mu     sync.Mutex // guards what follows
	closed bool
	conns  map[net.Conn]bool
}

// Listen starts a proxy on a free port of the loopback interface. Each direction takes the
// delay, so a round trip takes twice as long.
func Listen(target string, delay time.Duration) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("slow link: %w", err)
	}
	l := &Link{listener: listener, target: target, delay: delay, conns: make(map[net.Conn]bool)}
	l.wg.Go(l.accept)
	return l, nil
}

// Address is where the proxy listens, as host:port.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Close ends all connections, and returns when nothing of the proxy is left.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	l.listener.Close()
	for conn := range l.conns {
		conn.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.wg.Go(func() { l.serve(client) })
	}
}

func (l *Link) serve(client net.Conn) {
	defer l.drop(client)
	if !l.keep(client) {
		return
	}
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return // the client sees its connection closed
	}
	defer l.drop(server)
	if !l.keep(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.carry(server, client) })
	both.Go(func() { l.carry(client, server) })
	both.Wait()
}

// keep registers a connection to be closed with the proxy, unless it is closed already.
func (l *Link) keep(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[conn] = true
	return !l.closed
}

func (l *Link) drop(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
	conn.Close()
}

// parcel is the data of one read, and its delivery time.
type parcel struct {
	data []byte
	due  time.Time
}

// carry takes bytes from one end to the other until either is closed.
func (l *Link) carry(to, from net.Conn) {
	// Enough for the delay at any speed of a loopback connection: the reader does not wait.
	under := make(chan parcel, 1<<14)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(under)
		l.read(from, under)
	})
	for p := range under {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			from.Close() // ends the reader
			break
		}
	}
	for range under { // lets a reader that waits for room go on to its end
	}
	if half, ok := to.(*net.TCPConn); ok {
		half.CloseWrite()
	}
	reader.Wait()
}

func (l *Link) read(from io.Reader, under chan<- parcel) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			under <- parcel{data: append([]byte(nil), buffer[:n]...), due: time.Now().Add(l.delay)}
		}
		if err != nil {
			return
		}
	}
}
