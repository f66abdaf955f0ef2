package cgroup

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMemoryKillsAreReadFromEitherVersion(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       bool
	}{
		{"memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n", true},
		{"memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\noom_group_kill 0\n", false},
		{"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", true},
		{"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", false},
		{"memory.oom_control", "oom_kill_disable 1\nunder_oom 0\n", false}, // an old kernel
		{"memory.events", "oom_kill many\n", false},
		{"other", "oom_kill 3\n", false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := OOMKilled([]string{"/no/such/group", dir}); got != c.want {
			t.Errorf("%s with %q: got %v, want %v", c.file, c.text, got, c.want)
		}
	}
}

func TestGroupsThatAreGoneHoldNothing(t *testing.T) {
	gone := []string{filepath.Join(t.TempDir(), "gone")}
	if err := Kill(gone, time.Second, nil); err != nil {
		t.Errorf("kill: %v", err)
	}
	if err := Remove(gone); err != nil {
		t.Errorf("remove: %v", err)
	}
	if err := JoinThread(gone); err == nil {
		t.Error("join: got no error")
	}
}

func TestTheGroupOfVersion2IsFound(t *testing.T) {
	v1, v2 := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(v2, "cgroup.controllers"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Unified([]string{v1, v2}); got != v2 {
		t.Errorf("got %q, want %q", got, v2)
	}
	if got := Unified([]string{v1}); got != "" {
		t.Errorf("got %q, want none", got)
	}
}

// A parent that is there and belongs to another user is none: pods would not start. In /proc nobody can make a directory.
func TestParentInWhichNoGroupCanBeMade_IsAnError(t *testing.T) {
	if err := (&Hierarchy{}).openRoot("/proc/self/fd", "fd"); err == nil {
		t.Error("a parent in which no group can be made is taken")
	}
	dir := t.TempDir()
	if err := (&Hierarchy{}).openRoot(dir+"/statusd", "statusd"); err != nil {
		t.Errorf("a parent that can be made: %v", err)
	}
	if left, err := os.ReadDir(dir + "/statusd"); err != nil || len(left) > 0 {
		t.Errorf("left in the parent: %v, %v", left, err)
	}
}
