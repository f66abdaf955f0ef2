package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAShimLeavesTheGroupOfTheService(t *testing.T) {
	unified, own, memory := t.TempDir(), t.TempDir(), t.TempDir()
	if err := leaveService(map[string]string{"": unified, "name=systemd": own, "memory": memory}, "/statusd", 123); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{unified, own} {
		if content, err := os.ReadFile(filepath.Join(root, "statusd/shims/cgroup.procs")); err != nil || string(content) != "123" {
			t.Errorf("got %q (%v), want the process in the group of the shims", content, err)
		}
	}
	if entries, err := os.ReadDir(memory); err != nil || len(entries) > 0 {
		t.Errorf("got %v (%v), want that limits are left alone", entries, err)
	}
	if err := leaveService(map[string]string{"": "/proc/nowhere"}, "/statusd", 123); err == nil {
		t.Error("no error where no group can be made")
	}
}
