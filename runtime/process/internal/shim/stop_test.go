package shim

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// A grace that is shorter than the first one but begins later may end later, and then
// it must not count.
func TestAStopOnlyBringsTheKillNearer(t *testing.T) {
	main := exec.Command("sleep", "100000")
	if err := main.Start(); err != nil {
		t.Fatal(err)
	}
	s := &shim{
		dir: record.Dir(t.TempDir()), spec: record.Spec{StopSignal: int(syscall.SIGTERM)},
		main: main.Process.Pid,
	}
	request := func(grace time.Duration) time.Time {
		if err := record.Write(s.dir.Stop(), record.Stop{Grace: grace}); err != nil {
			t.Fatal(err)
		}
		s.readStop()
		return s.deadline
	}
	if s.readStop(); s.kill != nil {
		t.Error("no stop was asked for, and the kill is set")
	}
	first := request(time.Hour)
	if err := main.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the command ended with %v, want SIGTERM", err)
	}
	if later := request(time.Hour - time.Nanosecond); !later.Equal(first) {
		t.Errorf("the kill moved from %s to %s by a grace that ends later", first, later)
	}
	if nearer := request(time.Minute); !nearer.Before(first) {
		t.Errorf("the kill stayed at %s, want it nearer than %s", nearer, first)
	}
	s.kill.Stop()
}
