package agent

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/process"
)

// An operator can see what the disk does not take or give.
func TestMetricsShowTroublesWithTheDisk(t *testing.T) {
	c := testConfig(t, "littered")
	pods := filepath.Join(c.StateDir, runtimeDirectory, "pods")
	if err := os.MkdirAll(pods, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pods, "stray"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, _ := run(t, c)
	awaitReady(t, a, "sleeper-littered")
	_, metrics := get(t, a, "/metrics")
	for _, want := range []string{"\nstatusd_runtime_problems 1\n", "\nstatusd_journal_writable 1\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
	if _, ready := get(t, a, "/readyz?verbose"); !strings.Contains(ready, "[+]journal ok") {
		t.Errorf("readyz says %q of a journal that can be written", ready)
	}
}

// A local user who opens connections without end takes a bounded number of file descriptors, and
// those that say nothing are closed.
func TestConnectionsAreLimited(t *testing.T) {
	a, _ := run(t, testConfig(t, "limited"))
	awaitReady(t, a, "sleeper-limited")
	before := descriptors(t)
	for range 2 * process.MaxConnections {
		connection, err := net.Dial("tcp", a.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
	}
	if code, _ := get(t, a, "/livez"); code != http.StatusOK { // once a silent one was closed
		t.Errorf("livez answers %d", code)
	}
	// One descriptor of each pair is the client's, which is in this process too.
	if taken := descriptors(t) - before - 2*process.MaxConnections; taken > process.MaxConnections+16 {
		t.Errorf("the endpoints have taken %d file descriptors, want at most about %d", taken, process.MaxConnections)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
