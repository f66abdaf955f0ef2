package shim

import (
	"os"
	"os/exec"
	"os/signal"
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

// A statusd that ends while the shim starts is followed by one that finds no socket yet. Its
// signal may come before the shim listens for signals, and is then lost.
func TestAStopThatWasAskedForBeforeTheShimListenedIsSeen(t *testing.T) {
	main, err := os.StartProcess("/bin/sleep", []string{"sleep", "100000"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	s := &shim{dir: record.Dir(t.TempDir()), signals: listen(), server: newServer(), main: main.Pid}
	defer signal.Reset()
	if err := record.Write(s.dir.Stop(), record.Stop{}); err != nil {
		t.Fatal(err)
	}
	if status := s.wait(); status.Signal() != syscall.SIGKILL {
		t.Errorf("the command ended by %s, want it killed because of stop.json", status.Signal())
	}
}
