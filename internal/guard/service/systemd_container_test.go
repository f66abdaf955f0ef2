//go:build systemd

package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

// These tests run as root under a systemd that they may do anything with: make guard-systemd.

func install(t *testing.T, name, service string) *Systemd {
	t.Helper()
	file := "/run/systemd/system/" + name
	if err := os.WriteFile(file, []byte("[Service]\n"+service+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Enabled, as a kubelet is: systemd forgets how a unit has ended that nothing refers to.
	wants := "/run/systemd/system/multi-user.target.wants"
	if err := os.MkdirAll(wants, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, wants+"/"+name); err != nil {
		t.Fatal(err)
	}
	unit := NewSystemd(name, SystemdOptions{})
	t.Cleanup(unit.Close)
	conn, err := unit.connection()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.ReloadContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unit.Stop(context.Background()) })
	return unit
}

func awaitUnit(t *testing.T, unit *Systemd, want func(guard.Process) bool) guard.Process {
	t.Helper()
	for {
		if p := state(t, unit); want(p) {
			return p
		}
		if t.Context().Err() != nil {
			t.Fatal("the test has ended")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// With Restart=on-failure systemd does not restart a kubelet that ends with exit code 0. The guard does.
func TestRealSystemd_ExitCode0(t *testing.T) {
	unit := install(t, "kubelet0.service", "ExecStart=/bin/sh -c 'trap \"exit 0\" TERM; while :; do sleep 0.1; done'\nRestart=on-failure\nRestartSec=0")
	if err := unit.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists && p.Unit == "active/running" })
	if err := syscall.Kill(first.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := awaitUnit(t, unit, func(p guard.Process) bool { return !p.Exists && p.Unit == "inactive/dead" }) // systemd has noticed
	if ended.ExitCode == nil || *ended.ExitCode != 0 || ended.Restarting {
		t.Errorf("got %+v", ended)
	}
	if err := unit.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists }); p.PID == first.PID {
		t.Errorf("got %+v", p)
	}
}

func TestRealSystemd_KilledAndRestartedBySystemd(t *testing.T) {
	unit := install(t, "kubelet1.service", "ExecStart=/bin/sleep 1000\nRestart=always\nRestartSec=0")
	news := make(chan struct{}, 1000)
	watched := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); <-watched }()
	go func() { watched <- unit.Watch(ctx, func() { news <- struct{}{} }) }()
	<-news
	if err := unit.Start(ctx); err != nil {
		t.Fatal(err)
	}
	first := awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists })
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-news
	second := awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists && p.PID != first.PID })
	if second.Starts != 1 {
		t.Errorf("systemd has restarted it %d times, want 1", second.Starts)
	}
}

// What an operator or a tool stops is told apart from what ends by itself, whatever signal ends it.
func TestRealSystemd_StoppedByRequest(t *testing.T) {
	const traps = "ExecStart=/bin/sh -c 'trap \"exit 0\" TERM; while :; do sleep 0.1; done'"
	for i, c := range []struct {
		name, service string
		end           func(t *testing.T, unit string, pid int)
		asked         bool
	}{
		{"systemctl stop", traps, func(t *testing.T, unit string, _ int) { systemctl(t, "stop", unit) }, true},
		{"systemctl stop of one that does not handle SIGTERM", "ExecStart=/bin/sleep 1000", func(t *testing.T, unit string, _ int) { systemctl(t, "stop", unit) }, true},
		{"systemctl stop of one that has Restart=always", traps + "\nRestart=always\nRestartSec=0", func(t *testing.T, unit string, _ int) { systemctl(t, "stop", unit) }, true},
		{"exit code 0 after a SIGTERM of another", traps, func(t *testing.T, _ string, pid int) { signal(t, pid, syscall.SIGTERM) }, false},
		{"killed", "ExecStart=/bin/sleep 1000", func(t *testing.T, _ string, pid int) { signal(t, pid, syscall.SIGKILL) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprintf("kubelet1%d.service", i)
			unit := install(t, name, c.service)
			if err := unit.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			first := awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists && p.Unit == "active/running" })
			c.end(t, name, first.PID)
			p := awaitUnit(t, unit, func(p guard.Process) bool { return !p.Exists && !p.Stopping && !strings.HasPrefix(p.Unit, "active/") })
			if p.Asked.IsZero() == c.asked {
				t.Errorf("got %+v, asked to stop: %t", p, c.asked)
			}
			if err := unit.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if p := awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists }); !p.Asked.IsZero() || p.Stopping {
				t.Errorf("after its start: %+v", p)
			}
		})
	}
}

func TestRealSystemd_DisabledByRequest(t *testing.T) {
	const name = "kubelet20.service"
	unit := install(t, name, "ExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target")
	if err := unit.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists && !p.Disabled })
	systemctl(t, "disable", "--runtime", "--now", name)
	awaitUnit(t, unit, func(p guard.Process) bool { return !p.Exists && p.Disabled })
}

func systemctl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "systemctl", args...).CombinedOutput(); err != nil {
		t.Fatalf("systemctl %v: %v\n%s", args, err, out)
	}
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

func TestRealSystemd_FrozenAndRestarted(t *testing.T) {
	unit := install(t, "kubelet2.service", "ExecStart=/bin/sleep 1000")
	if err := unit.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists && !p.Stopped })
	if err := syscall.Kill(first.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if p := awaitUnit(t, unit, func(p guard.Process) bool { return p.Stopped }); p.Unit != "active/running" {
		t.Errorf("got %+v", p)
	}
	if err := unit.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists }); p.PID == first.PID || p.Stopped {
		t.Errorf("got %+v", p)
	}
}

func TestRealSystemd_AUnitThatFailsTooOftenIsStarted(t *testing.T) {
	unit := install(t, "kubelet3.service", "ExecStart=/bin/sh -c 'test -e /run/may-start && exec sleep 1000'\nRestart=always\nRestartSec=0")
	_ = unit.Start(t.Context())
	awaitUnit(t, unit, func(p guard.Process) bool { return p.Unit == "failed/failed" }) // beyond StartLimitBurst
	if err := os.WriteFile("/run/may-start", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unit.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists && strings.HasPrefix(p.Unit, "active/") })
}

func TestRealSystemd_AMaskedUnit(t *testing.T) {
	if err := os.Symlink("/dev/null", "/run/systemd/system/kubelet4.service"); err != nil {
		t.Fatal(err)
	}
	unit := NewSystemd("kubelet4.service", SystemdOptions{})
	t.Cleanup(unit.Close)
	if p := state(t, unit); !p.Masked {
		t.Errorf("got %+v", p)
	}
	nothing := NewSystemd("nothing.service", SystemdOptions{})
	t.Cleanup(nothing.Close)
	if p, err := nothing.State(t.Context()); err == nil {
		t.Errorf("a unit that does not exist is %+v", p)
	}
}
