package machineside

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/statusd/statusd/internal/audit"
)

func write(t *testing.T, root string, files map[string]string) *host {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &host{root: root, left: 1000}
}

// What the machine calls itself is read where a kubelet reads it; what is not mounted is not known.
func TestIdentity(t *testing.T) {
	root := t.TempDir()
	h := write(t, root, map[string]string{"etc/machine-id": "m\n", "proc/sys/kernel/random/boot_id": "b\n"})
	if got, want := identity(h, filepath.Join(root, "proc")), (audit.Identity{MachineID: "m", BootID: "b"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A container that is paused is a frozen group below that of its pod, with either version of control groups.
func TestFrozenGroups(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"none":      {map[string]string{"pod/cgroup.freeze": "0\n", "pod/c/cgroup.freeze": "0\n"}, false},
		"version 2": {map[string]string{"pod/cgroup.freeze": "0\n", "pod/c/cgroup.freeze": "1\n"}, true},
		"version 1": {map[string]string{"pod/c/freezer.state": "FROZEN\n"}, true},
	} {
		if got := frozen(write(t, t.TempDir(), c.files), "/pod", maxBelow); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
