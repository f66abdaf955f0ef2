package process

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A statusd that was killed while it started a process leaves its listener to that process for a
// moment. The next one waits for it, and not for one that stays.
func TestListenWaitsForAPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		predecessor, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := predecessor.Addr().String()
		if listener, err := Listen(address); err == nil {
			listener.Close()
			t.Error("listens where another one does")
		}
		time.AfterFunc(listenPatience/2, func() { predecessor.Close() })
		listener, err := Listen(address)
		if err != nil {
			t.Fatalf("got %v, want the address once the predecessor is gone", err)
		}
		listener.Close()
	})
}
