package hostproc

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFrozen(t *testing.T) {
	for _, c := range []struct {
		name, member, file, text string
		want                     bool
	}{
		{"version 2, frozen", "0::/system.slice/kubelet.service\n", "system.slice/kubelet.service/cgroup.events", "populated 1\nfrozen 1\n", true},
		{"version 2", "0::/system.slice/kubelet.service\n", "system.slice/kubelet.service/cgroup.events", "populated 1\nfrozen 0\n", false},
		{"version 2, seen from another namespace", "0::/../../system.slice/kubelet.service\n", "system.slice/kubelet.service/cgroup.events", "populated 1\nfrozen 1\n", true},
		{"hybrid, frozen", "5:pids:/x\n0::/kubelet\n", "unified/kubelet/cgroup.events", "frozen 1\n", true},
		{"version 1, frozen", "7:freezer:/kubelet\n5:pids:/x\n", "freezer/kubelet/freezer.state", "FROZEN\n", true},
		{"version 1, another group is frozen", "7:freezer:/other\n", "freezer/kubelet/freezer.state", "FROZEN\n", false},
		{"version 1", "7:freezer:/kubelet\n", "freezer/kubelet/freezer.state", "THAWED\n", false},
		{"nothing to read", "7:freezer\n", "x", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			proc, groups := t.TempDir(), t.TempDir()
			for path, text := range map[string]string{filepath.Join(proc, "42", "cgroup"): c.member, filepath.Join(groups, c.file): c.text} {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := Frozen(proc, groups, 42); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
			if Frozen(proc, groups, 43) {
				t.Error("a process that does not exist is frozen")
			}
		})
	}
}
