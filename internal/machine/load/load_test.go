package load

import (
	"testing"
)

// The load is that of what the node runs out of first.
func TestTheLoadIsTheLargestPart(t *testing.T) {
	l := Load{
		CPU:    CPULoad{Cores: 4, Busy: 0.5},
		Memory: MemoryLoad{Total: 8 << 30, Available: 80 << 20},
		Disks:  []DiskLoad{{Path: "/", Total: 100, Available: 40, Inodes: 10, InodesFree: 9}, {Path: "/data"}},
		PIDs:   Count{Used: 100, Max: 1000}, Files: Count{Used: 5, Max: 0},
		Pressure: map[string]Pressure{"memory": {Some10: 12}, "cpu": {Some10: 100}},
	}
	l.Summarize()
	if l.Limit != "memory" || l.Load < 0.98 || l.Load >= 1 {
		t.Errorf("the load is %v of %s", l.Load, l.Limit)
	}
	if got, want := l.Parts[0].Text, "80 MiB of 8 GiB left"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	for _, p := range l.Parts {
		if p.Name == "files" && p.Used != 0 {
			t.Errorf("an unknown limit is used by %v", p.Used)
		}
		if p.Name == "cpu pressure" {
			t.Error("waiting for a CPU is counted beside busy CPUs")
		}
	}
	var empty Load
	if empty.Summarize(); empty.Load != 0 {
		t.Errorf("a machine of which nothing is known has a load of %v", empty.Load)
	}
}
