package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The mark of a joined state keeps a standalone agent away, also when no pod is left in it: the
// journal may hold statuses that were never sent.
func TestStandaloneRefusesAJoinedState(t *testing.T) {
	c := testConfig(t, "marked")
	if err := os.MkdirAll(c.StateDir, 0o711); err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(c.StateDir, joinedFile)
	markJoined(marker)
	options := withProcesses(c, Options{Logger: slog.New(slog.DiscardHandler)})
	if _, err := New(c, options); err == nil || !strings.Contains(err.Error(), "--leave-cluster") {
		t.Errorf("got %v, want that it is refused and how to leave the cluster", err)
	}
	c.LeaveCluster = true
	for _, leave := range []bool{true, false} { // once it has left, it need not say so again
		c.LeaveCluster = leave
		a, err := New(c, options)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
