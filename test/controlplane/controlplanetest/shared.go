package controlplanetest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/controlplane/sharedserver"
	"github.com/statusd/statusd/test/patience"
)

// Shared is the server that the tests of a package share: the server that make test-real has started for all packages, or
// a server that starts with the first test. The zero value is ready for use; keep it in a variable of the test package.
type Shared struct {
	// Own is for tests of the server itself: the package has a server of its own.
	Own bool

	once     sync.Once
	server   *Server
	err      error
	attached bool // another program ends the server
}

// Server returns the server, which starts with the first call. Tests may run in parallel.
func (s *Shared) Server(t testing.TB) *Server {
	t.Helper()
	s.once.Do(func() { s.server, s.err = s.start(t) })
	if s.err != nil {
		t.Fatalf("start shared control plane: %v", s.err)
	}
	s.server.logIfFailed(t, len(s.server.Process.Log()))
	return s.server
}

func (s *Shared) start(t testing.TB) (*Server, error) {
	dir := os.Getenv(sharedserver.Variable)
	if s.Own || dir == "" {
		return start(t, controlplane.Options{})
	}
	ctx, cancel := patience.Context(t)
	defer cancel()
	process, err := controlplane.Attach(ctx, dir)
	if err != nil {
		return nil, err
	}
	s.attached = true
	return newServer(process)
}

// Main is what TestMain calls: it runs the tests, ends the server, looks for goroutines left behind
// and exits.
func (s *Shared) Main(m *testing.M) {
	code := m.Run()
	if err := s.close(); err != nil {
		fmt.Fprintln(os.Stderr, "end of the shared control plane:", err)
		code = max(code, 1)
	}
	if err := s.leftBehind(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
		code = 1
	}
	os.Exit(code)
}

// leftBehind looks for goroutines for some time: that of a client of kubectl exec notices at its next ping, within 5 s, that its
// connection was cut.
func (s *Shared) leftBehind() (err error) {
	for range 10 {
		if err = goleak.Find(s.connections()...); err == nil {
			return nil
		}
	}
	return err
}

// connections are goroutines that end with the server, which ends later if other packages share it.
func (s *Shared) connections() (ignored []goleak.Option) {
	if !s.attached {
		return nil
	}
	for _, function := range []string{
		"golang.org/x/net/http2.(*ClientConn).readLoop", "net/http.(*http2ClientConn).readLoop",
		"net/http.(*persistConn).readLoop", "net/http.(*persistConn).writeLoop",
	} {
		ignored = append(ignored, goleak.IgnoreAnyFunction(function))
	}
	return ignored
}

func (s *Shared) close() error {
	if s.server == nil || s.attached {
		return nil
	}
	return s.server.close()
}
