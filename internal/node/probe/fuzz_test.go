package probe

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/internal/httpget"
)

// answering is a connection whose other end reads all and writes the bytes. The end of it is waited for by wait.
func answering(data []byte) (conn net.Conn, wait func()) {
	conn, other := net.Pipe()
	var ends sync.WaitGroup
	ends.Go(func() { _, _ = io.Copy(io.Discard, other) })
	ends.Go(func() {
		_, _ = other.Write(data)
		other.Close()
	})
	return conn, func() {
		conn.Close()
		ends.Wait()
	}
}

// Whatever a container answers, a probe ends with a result.
func FuzzHTTPAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	f.Add([]byte("HTTP/1.1 500 no\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"))
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := realChecker()
		var waits []func()
		var mu sync.Mutex
		transport := httpget.NewTransport(func(context.Context, string, string) (net.Conn, error) {
			conn, wait := answering(data)
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, wait)
			return conn, nil
		})
		c.transport = transport
		got := put(t, c, question{handler: &v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(80), Path: "/"}}, timeout: 10 * time.Second})
		transport.CloseIdleConnections()
		mu.Lock()
		defer mu.Unlock()
		for _, wait := range waits {
			wait()
		}
		if len(got.message) > 2*maxBodyBytes {
			t.Errorf("a message of %d bytes", len(got.message))
		}
	})
}

// Whatever a container answers to a probe of gRPC, the call ends.
func FuzzGRPCAnswer(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88"))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		conn, wait := answering(data)
		defer wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if status, err := realChecker().callHealth(ctx, conn, "127.0.0.1:1", "web"); err == nil && status.String() == "" {
			t.Error("a status without a name")
		}
	})
}
