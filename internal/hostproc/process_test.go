package hostproc

import (
	"errors"
	"os"
	"strconv"
	"testing"
)

// All processes of this machine can be read.
func TestEveryProcessOfThisMachineCanBeRead(t *testing.T) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		switch p, err := Read("/proc", pid); {
		case err == nil:
			seen++
			if p.State == 0 || p.SinceBoot < 0 {
				t.Errorf("process %d: got %+v", pid, p)
			}
		case !errors.Is(err, ErrGone):
			t.Error(err)
		}
	}
	if seen == 0 {
		t.Error("no process was read")
	}
}
