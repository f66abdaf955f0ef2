package process

import (
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime"
)

// listen is a server on a free port that does one thing to one connection.
func listen(t *testing.T, serve func(*net.TCPConn)) (port int32) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if connection, err := listener.AcceptTCP(); err == nil {
			serve(connection)
			connection.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-served
	})
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

// stream is a client's end of a connection that can be closed one way.
func stream(t *testing.T) (client, theirs *net.TCPConn) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = listener.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close(); theirs.Close() })
	return dialed.(*net.TCPConn), theirs
}

// The server answers when the client has said all: with a checksum of it, and with as much of
// its own.
func TestPortForwardPassesAllOnAndTheEndOfEachDirection(t *testing.T) {
	h, _ := sleeping(t)
	const size = 64 << 20
	random := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), size) }
	want := sha256.New()
	if _, err := io.Copy(want, random()); err != nil {
		t.Fatal(err)
	}
	port := listen(t, func(c *net.TCPConn) {
		sum := sha256.New()
		if _, err := io.Copy(sum, c); err != nil {
			t.Error(err)
		}
		if _, err := c.Write(sum.Sum(nil)); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(c, random()); err != nil {
			t.Error(err)
		}
	})
	client, theirs := stream(t)
	ended := make(chan error, 1)
	go func() { ended <- h.PortForward(t.Context(), "pod", port, theirs) }()
	if _, err := io.Copy(client, random()); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	there := make([]byte, sha256.Size)
	if _, err := io.ReadFull(client, there); err != nil {
		t.Fatal(err)
	}
	back := sha256.New()
	if _, err := io.Copy(back, client); err != nil {
		t.Fatal(err)
	}
	if string(there) != string(want.Sum(nil)) || string(back.Sum(nil)) != string(there) {
		t.Error("the data is not what was sent")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestPortForwardToNothing(t *testing.T) {
	h, _ := sleeping(t)
	for _, c := range []struct {
		pod  types.UID
		port int32
	}{{"unknown", 80}, {"pod", 0}, {"pod", 65536}, {"pod", 1}} {
		_, theirs := stream(t)
		err := h.PortForward(t.Context(), c.pod, c.port, theirs)
		if err == nil || errors.Is(err, runtime.ErrNotFound) != (c.pod == "unknown") {
			t.Errorf("port %d of pod %s: got %v, want an error", c.port, c.pod, err)
		}
		if _, err := theirs.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("port %d of pod %s: the stream is open: %v", c.port, c.pod, err)
		}
	}
}
