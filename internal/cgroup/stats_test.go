package cgroup

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// group is a directory with files as the kernel shows them.
func group(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestStatsOfBothVersions(t *testing.T) {
	v2 := []string{group(t, map[string]string{
		"cgroup.controllers": "cpu memory\n",
		"cpu.stat":           "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n",
		"memory.current":     "1000\n",
		"memory.stat":        "anon 600\nfile 400\ninactive_file 300\npgfault 7\npgmajfault 2\n",
	})}
	v1 := []string{
		group(t, map[string]string{"cpuacct.usage": "1500000000\n", "cpu.stat": "nr_periods 0\n"}),
		group(t, map[string]string{
			"memory.usage_in_bytes": "1000\n",
			"memory.stat":           "rss 1\ninactive_file 1\ntotal_rss 600\ntotal_inactive_file 300\ntotal_pgfault 7\ntotal_pgmajfault 2\n",
		}),
	}
	want := Memory{Usage: 1000, WorkingSet: 700, Anonymous: 600, PageFaults: 7, MajorFaults: 2}
	for story, dirs := range map[string][]string{"version 2": v2, "version 1": v1} {
		if cpu, ok := CPU(dirs); !ok || cpu != 1500*time.Millisecond {
			t.Errorf("%s: got %s, %v; want 1.5s", story, cpu, ok)
		}
		if memory, ok := MemoryOf(dirs); !ok || memory != want {
			t.Errorf("%s: got %+v, %v; want %+v", story, memory, ok, want)
		}
	}
	neither := []string{group(t, nil), "/no/such/group"}
	if _, ok := CPU(neither); ok {
		t.Error("a group that counts no time was asked for it")
	}
	if _, ok := MemoryOf(neither); ok {
		t.Error("a group that counts no memory was asked for it")
	}
}
