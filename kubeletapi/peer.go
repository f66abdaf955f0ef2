package kubeletapi

import (
	"net"
	"syscall"
	"time"
)

// peerInterval is how often it is looked whether a client is still there.
const peerInterval = time.Second

// watchPeer calls gone when the client has closed the connection, until over is closed. Its reader would see
// that too, but not while it waits for a command that does not read its stdin.
func watchPeer(conn net.Conn, over <-chan struct{}, gone func()) {
	ticker := time.NewTicker(peerInterval)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
		}
		if hasClosed(conn) {
			gone()
			return
		}
	}
}

// hasClosed asks the kernel, which knows of an end behind data that was not read.
func hasClosed(conn net.Conn) bool {
	for {
		switch inner := conn.(type) {
		case interface{ NetConn() net.Conn }: // TLS
			conn = inner.NetConn()
			continue
		case *connection:
			conn = inner.Conn
			continue
		}
		break
	}
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	if err := control.Control(func(fd uintptr) {
		closed = peerHasClosed(fd)
	}); err != nil {
		return true // closed on this side
	}
	return closed
}
