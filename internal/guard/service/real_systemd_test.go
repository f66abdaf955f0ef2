//go:build real

package service

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/hostproc"
	"github.com/statusd/statusd/test/dbustest"
)

const (
	managerPath = dbus.ObjectPath("/org/freedesktop/systemd1")
	managerName = "org.freedesktop.systemd1.Manager"
	unitPath    = managerPath + "/unit/kubelet_2eservice"
	unitName    = "org.freedesktop.systemd1.Unit"
)

// fakeSystemd has one unit, kubelet.service, on a bus of its own.
type fakeSystemd struct {
	bus *dbus.Conn

	mu         sync.Mutex // guards what follows
	properties map[string]dbus.Variant
	jobs       []string
	result     string // of jobs; empty: they do not end
}

func startSystemd(t *testing.T) (*fakeSystemd, *Systemd) {
	t.Helper()
	bus, address := dbustest.Bus(t)
	f := &fakeSystemd{bus: bus, result: "done", properties: map[string]dbus.Variant{}}
	f.set("LoadState", "loaded", "ActiveState", "inactive", "SubState", "dead", "UnitFileState", "enabled", "MainPID", uint32(0))
	for _, e := range []struct {
		path dbus.ObjectPath
		name string
	}{{managerPath, managerName}, {unitPath, "org.freedesktop.DBus.Properties"}} {
		if err := bus.Export(f, e.path, e.name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bus.RequestName("org.freedesktop.systemd1", 0); err != nil {
		t.Fatal(err)
	}
	s := NewSystemd("kubelet.service", SystemdOptions{Address: address})
	t.Cleanup(s.Close)
	return f, s
}

// set changes properties, given as name and value by turns, and announces it.
func (f *fakeSystemd) set(pairs ...any) {
	f.mu.Lock()
	changed := map[string]dbus.Variant{}
	for i := 0; i < len(pairs); i += 2 {
		changed[pairs[i].(string)] = dbus.MakeVariant(pairs[i+1])
		f.properties[pairs[i].(string)] = dbus.MakeVariant(pairs[i+1])
	}
	f.mu.Unlock()
	_ = f.bus.Emit(unitPath, "org.freedesktop.DBus.Properties.PropertiesChanged", unitName, changed, []string{})
}

// GetAll answers for the properties of the unit.
func (f *fakeSystemd) GetAll(string) (map[string]dbus.Variant, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]dbus.Variant{"Id": dbus.MakeVariant("kubelet.service")}
	for name, value := range f.properties {
		all[name] = value
	}
	return all, nil
}

// Subscribe is that of the manager.
func (f *fakeSystemd) Subscribe() *dbus.Error { return nil }

// ResetFailedUnit is that of the manager.
func (f *fakeSystemd) ResetFailedUnit(unit string) *dbus.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs = append(f.jobs, "reset-failed "+unit)
	return nil
}

// StartUnit is that of the manager.
func (f *fakeSystemd) StartUnit(unit, mode string) (dbus.ObjectPath, *dbus.Error) {
	return f.job("start " + unit + " " + mode)
}

// StopUnit is that of the manager.
func (f *fakeSystemd) StopUnit(unit, mode string) (dbus.ObjectPath, *dbus.Error) {
	return f.job("stop " + unit + " " + mode)
}

// RestartUnit is that of the manager.
func (f *fakeSystemd) RestartUnit(unit, mode string) (dbus.ObjectPath, *dbus.Error) {
	return f.job("restart " + unit + " " + mode)
}

func (f *fakeSystemd) job(what string) (dbus.ObjectPath, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs = append(f.jobs, what)
	const job = managerPath + "/job/7"
	if f.result != "" {
		_ = f.bus.Emit(managerPath, managerName+".JobRemoved", uint32(7), job, "kubelet.service", f.result)
	}
	return job, nil
}

func (f *fakeSystemd) done() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.jobs, ", ")
}

// waiting is a job of a unit as systemd shows it.
type waiting struct {
	ID   uint32
	Path dbus.ObjectPath
}

func TestSystemd_TheStateOfAUnit(t *testing.T) {
	systemd, unit := startSystemd(t)
	begin := time.UnixMicro(1_700_000_000_000_000)
	for _, c := range []struct {
		name       string
		properties []any
		want       guard.Process
		exit       int // -1: unknown
	}{
		{"never started", nil, guard.Process{Sure: true, Unit: "inactive/dead"}, -1},
		{"ended with exit code 0", []any{"ExecMainCode", int32(1), "ExecMainStatus", int32(0), "ExecMainExitTimestamp", uint64(begin.UnixMicro())},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin}, 0},
		{"ended with exit code 255", []any{"ActiveState", "failed", "SubState", "failed", "ExecMainStatus", int32(255)},
			guard.Process{Sure: true, Unit: "failed/failed", Ended: begin}, 255},
		{"killed, and about to be started again", []any{"ActiveState", "activating", "SubState", "auto-restart", "ExecMainCode", int32(2), "ExecMainStatus", int32(9), "NRestarts", uint32(4)},
			guard.Process{Sure: true, Unit: "activating/auto-restart", Ended: begin, Signal: "SIGKILL", Restarting: true, Starts: 4}, -1},
		{"what runs before it has not ended", []any{"SubState", "start-pre"},
			guard.Process{Sure: true, Unit: "activating/start-pre", Ended: begin, Signal: "SIGKILL", Starting: true, Starts: 4}, -1},
		{"a job waits for the network", []any{"ActiveState", "inactive", "SubState", "dead", "Job", waiting{7, managerPath + "/job/7"}},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Starting: true, Starts: 4}, -1},
		{"no job", []any{"Job", waiting{0, "/"}},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Starts: 4}, -1},
		{"masked", []any{"ActiveState", "inactive", "SubState", "dead", "LoadState", "masked"},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Masked: true, Starts: 4}, -1},
		{"stopped by request: it ceased to be active before the process ended", []any{"LoadState", "loaded", "ExecMainStartTimestampMonotonic", uint64(10),
			"ActiveExitTimestampMonotonic", uint64(20), "ActiveExitTimestamp", uint64(begin.UnixMicro()), "ExecMainExitTimestampMonotonic", uint64(30), "Result", "success"},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Asked: begin, Starts: 4}, -1},
		{"ended by its watchdog", []any{"Result", "watchdog", "ExecMainStartTimestampMonotonic", uint64(11)},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Starts: 4}, -1},
		{"ended by itself after it was started again", []any{"Result", "success", "ExecMainStartTimestampMonotonic", uint64(25)},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Starts: 4}, -1},
		{"is being stopped, and its process has ended", []any{"ActiveState", "deactivating", "SubState", "stop-post", "Job", waiting{7, managerPath + "/job/7"}},
			guard.Process{Sure: true, Unit: "deactivating/stop-post", Ended: begin, Signal: "SIGKILL", Stopping: true, Starts: 4}, -1},
		{"disabled", []any{"ActiveState", "inactive", "SubState", "dead", "Job", waiting{0, "/"}, "UnitFileState", "disabled"},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Disabled: true, Starts: 4}, -1},
		{"stopped by request while systemd waited to restart it after a failure", []any{"UnitFileState", "enabled", "ActiveExitTimestampMonotonic", uint64(31), "Result", "exit-code",
			"InactiveExitTimestampMonotonic", uint64(32), "InactiveEnterTimestamp", uint64(begin.UnixMicro())},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Asked: begin, Starts: 4}, -1},
		{"the same after exit code 0, with Restart=always", []any{"Result", "success", "Restart", "always"},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Asked: begin, Starts: 4}, -1},
		{"the same, and Restart= was changed since", []any{"Restart", "on-failure"},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Asked: begin, Starts: 4}, -1},
		{"ended with exit code 0, which Restart=on-failure leaves alone", []any{"ExecMainStartTimestampMonotonic", uint64(26)},
			guard.Process{Sure: true, Unit: "inactive/dead", Ended: begin, Signal: "SIGKILL", Starts: 4}, -1},
		{"failed too often", []any{"ActiveState", "failed", "SubState", "failed", "Result", "start-limit-hit", "Restart", "always"},
			guard.Process{Sure: true, Unit: "failed/failed", Ended: begin, Signal: "SIGKILL", Starts: 4}, -1},
		{"frozen by request", []any{"FreezerState", "frozen"},
			guard.Process{Sure: true, Unit: "failed/failed", Ended: begin, Signal: "SIGKILL", Starts: 4, Frozen: true}, -1},
		{"runs, and its process is not one of this PID namespace", []any{"LoadState", "loaded", "UnitFileState", "enabled", "ActiveState", "active", "SubState", "running", "MainPID", uint32(1), "FreezerState", "running",
			"ExecMainStartTimestamp", uint64(begin.UnixMicro()), "ExecMainStartTimestampMonotonic", uint64(1 << 50)},
			guard.Process{Exists: true, Sure: true, PID: 1, Unit: "active/running", Started: begin, Ended: begin, Starts: 4}, -1},
	} {
		systemd.set(c.properties...)
		got, err := unit.State(t.Context())
		exit := -1
		if got.ExitCode != nil {
			exit, got.ExitCode = *got.ExitCode, nil
		}
		if err != nil || got != c.want || exit != c.exit {
			t.Errorf("%s:\ngot  %+v, exit code %d (%v)\nwant %+v, exit code %d", c.name, got, exit, err, c.want, c.exit)
		}
	}
	systemd.set("LoadState", "not-found")
	if p, err := unit.State(t.Context()); err == nil {
		t.Errorf("a unit that does not exist is %+v", p)
	}
}

// systemd forgets how a unit has ended that nothing refers to. That it was stopped by request is known until it runs again.
func TestSystemd_StopThatSystemdHasForgotten(t *testing.T) {
	stopped := []any{"ExecMainStartTimestampMonotonic", uint64(10), "ActiveExitTimestampMonotonic", uint64(20), "ActiveExitTimestamp", uint64(1_700_000_000_000_000),
		"ExecMainExitTimestampMonotonic", uint64(30), "Result", "success"}
	forgotten := []any{"UnitFileState", "enabled", "ExecMainStartTimestampMonotonic", uint64(0), "ActiveExitTimestampMonotonic", uint64(0), "ExecMainExitTimestampMonotonic", uint64(0)}
	for name, before := range map[string][]any{"stopped": stopped, "disabled": {"UnitFileState", "disabled"}} {
		systemd, unit := startSystemd(t)
		if p := state(t, unit); !p.Asked.IsZero() {
			t.Errorf("%s: never started: %+v", name, p)
		}
		systemd.set(before...)
		state(t, unit)
		systemd.set(forgotten...)
		if p := state(t, unit); p.Asked.IsZero() {
			t.Errorf("%s, and forgotten: %+v", name, p)
		}
		systemd.set("MainPID", uint32(1))
		state(t, unit)
		systemd.set("MainPID", uint32(0))
		if p := state(t, unit); !p.Asked.IsZero() {
			t.Errorf("%s, and started since: %+v", name, p)
		}
	}
}

// The state of the process comes from the kernel: systemd does not know that it is stopped.
func TestSystemd_AProcessThatIsStopped(t *testing.T) {
	systemd, unit := startSystemd(t)
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	pid := cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	kernel, err := hostproc.Read("/proc", pid)
	for ; err == nil && !kernel.Stopped(); kernel, err = hostproc.Read("/proc", pid) {
		time.Sleep(time.Millisecond) // a state of another process: there is no event to wait for
	}
	if err != nil {
		t.Fatal(err)
	}
	systemd.set("MainPID", uint32(pid), "ExecMainStartTimestampMonotonic", uint64(kernel.SinceBoot/time.Microsecond))
	if p := state(t, unit); !p.Exists || !p.Stopped {
		t.Errorf("got %+v", p)
	}
}

func TestSystemd_Jobs(t *testing.T) {
	systemd, unit := startSystemd(t)
	for _, do := range []func(context.Context) error{unit.Start, unit.Stop, unit.Restart} {
		if err := do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := "start kubelet.service replace, stop kubelet.service replace, reset-failed kubelet.service, restart kubelet.service fail"
	if got := systemd.done(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	systemd.mu.Lock()
	systemd.result = "failed"
	systemd.mu.Unlock()
	if err := unit.Start(t.Context()); err == nil || !strings.Contains(err.Error(), `"failed"`) {
		t.Errorf("got %v", err)
	}
	systemd.mu.Lock()
	systemd.result = ""
	systemd.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- unit.Stop(ctx) }()
	for !strings.HasSuffix(systemd.done(), "stop kubelet.service replace") { // begun, and it does not end
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestSystemd_ChangesAreSeenAtOnce(t *testing.T) {
	systemd, unit := startSystemd(t)
	ctx, cancel := context.WithCancel(t.Context())
	news := make(chan struct{}, 100)
	ended := make(chan error, 1)
	go func() { ended <- unit.Watch(ctx, func() { news <- struct{}{} }) }()
	<-news // it listens
	systemd.set("SubState", "failed")
	<-news
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
