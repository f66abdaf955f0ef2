package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// An operator drains a node without an API server, and takes it back.
func TestDrainAndUndrain(t *testing.T) {
	c := testConfig(t, "drained")
	if _, err := Drain(t.Context(), c); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v, want that statusd is not running", err)
	}
	a, _ := run(t, c)
	awaitReady(t, a, "sleeper-drained")
	if info, err := os.Stat(filepath.Join(c.StateDir, controlSocket)); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("control socket: %v (%v), want that only its owner can use it", info, err)
	}
	if said, err := Drain(t.Context(), c); err != nil || said != "drained: 0 pods of this node still run" {
		t.Fatalf("got %q (%v)", said, err)
	}
	awaitStatus(t, a, "sleeper-drained", "an ended container", func(s *v1.PodStatus) bool {
		return s.Phase == v1.PodRunning && s.ContainerStatuses[0].State.Terminated != nil && !isReady(s)
	})
	if _, err := Undrain(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, a, "sleeper-drained")
}
