package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What is mounted in the state, as a volume in memory or what a pod has mounted in its own, is unmounted and never deleted.
func TestDeleteState_LeavesWhatIsMounted(t *testing.T) {
	config := Config{StateDir: filepath.Join(t.TempDir(), "state")}
	inside, outside := filepath.Join(config.StateDir, runtimeDirectory, "pods", "a pod", "volumes", "data"), t.TempDir()
	if err := errors.Join(os.MkdirAll(inside, 0o755), os.WriteFile(filepath.Join(outside, "precious"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	switch err := unix.Mount(outside, inside, "", unix.MS_BIND, ""); {
	case errors.Is(err, unix.EPERM): // then nobody else has mounted anything there
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(inside, unix.MNT_DETACH) })
	if err := DeleteState(config); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Errorf("deleted through a mount: %v", err)
	}
	if _, err := os.Stat(config.StateDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state is still there: %v", err)
	}
}
