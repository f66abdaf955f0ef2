package unixsocket_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/unixsocket"
)

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := unixsocket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The path is longer than what the kernel takes, and only the owner may connect.
func TestALongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.sock")
	l := listen(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	accepted := make(chan error, 1)
	go func() {
		connection, err := l.Accept()
		if err == nil {
			err = connection.Close()
		}
		accepted <- err
	}()
	connection, err := unixsocket.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(connection.Close(), <-accepted, l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the closed socket is still there: %v", err)
	}
}

func TestALivingSocketIsNotReplacedADeadOneIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	first := listen(t, path)
	if _, err := unixsocket.Listen(path); !errors.Is(err, unixsocket.ErrInUse) {
		t.Errorf("a living socket: got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	dead, err := net.Listen("unix", path) // and leaves its file, as a killed process does
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if err := listen(t, path).Close(); err != nil {
		t.Error(err)
	}
}

func TestAFileIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := unixsocket.Listen(path); err == nil {
		t.Errorf("a file was replaced by %v", l.Addr())
	}
	if data, err := os.ReadFile(path); string(data) != "x" {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := unixsocket.Listen(filepath.Join(path, "below")); err == nil {
		t.Error("a socket below a file")
	}
}
