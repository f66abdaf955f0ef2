package controlplanetest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/internal/controlplane"
)

// Shared is the server that the tests of a package share. The zero value is ready for use; keep it
// in a variable of the test package.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Server returns the server, which starts with the first call. Tests may run in parallel.
func (s *Shared) Server(t testing.TB) *Server {
	t.Helper()
	s.once.Do(func() { s.server, s.err = start(t, controlplane.Options{}) })
	if s.err != nil {
		t.Fatalf("start shared control plane: %v", s.err)
	}
	s.server.logIfFailed(t, len(s.server.Process.Log()))
	return s.server
}

// Main is what TestMain calls: it runs the tests, ends the server, looks for goroutines left behind
// and exits.
func (s *Shared) Main(m *testing.M) {
	code := m.Run()
	if err := s.close(); err != nil {
		fmt.Fprintln(os.Stderr, "end of the shared control plane:", err)
		code = max(code, 1)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
		code = 1
	}
	os.Exit(code)
}

func (s *Shared) close() error {
	if s.server == nil {
		return nil
	}
	return s.server.close()
}
