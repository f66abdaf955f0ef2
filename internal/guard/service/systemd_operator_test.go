//go:build systemd

package service

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

// guarded runs a guard that may restart the unit, and knows its process alone.
func guarded(t *testing.T, unit *Systemd) *guard.Guard {
	t.Helper()
	o := guard.Options{Kubelet: unit, Policy: guard.DefaultPolicy(), Every: 500 * time.Millisecond, StateFile: filepath.Join(t.TempDir(), "guard.json"), Collect: func(ctx context.Context) guard.Evidence {
		now := time.Now()
		p, err := unit.State(ctx)
		if err != nil {
			return guard.Evidence{Process: guard.NotKnown[guard.Process](now, err.Error())}
		}
		return guard.Evidence{Process: guard.Read(now, p)}
	}}
	o.Policy.Restart, o.Policy.FirstPause = true, time.Second
	g, err := guard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return g
}

// looks is so long that a guard would have restarted a kubelet that died: it does so after 3 s.
const looks = 12 * time.Second

// What operators, kubeadm and packages do with the kubelet's unit is left alone by a guard that restarts a kubelet which dies.
func TestRealSystemd_WhatOperatorsDo_IsLeftAlone(t *testing.T) {
	const (
		name    = "kubelet30.service"
		service = "ExecStart=/bin/sleep 1000\nRestart=on-failure\n[Install]\nWantedBy=multi-user.target"
		file    = "/run/systemd/system/" + name
	)
	unit := install(t, name, service)
	if err := unit.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	g := guarded(t, unit)
	wait := func() {
		t.Helper()
		select {
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		case <-time.After(looks):
		}
	}
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("[Service]\n"+content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		systemctl(t, "daemon-reload")
	}
	for _, c := range []struct {
		name string
		do   func()
		runs bool // the unit runs while the guard looks
		undo func()
	}{
		{"kubeadm reset", func() {
			systemctl(t, "stop", name)
			if err := os.RemoveAll(root); err != nil {
				t.Fatal(err)
			}
		}, false, func() { systemctl(t, "start", name) }},
		{"restore of etcd: stopped for as long as it takes", func() { systemctl(t, "stop", name) }, false, func() { systemctl(t, "start", name) }},
		{"package upgrade: stopped, another unit file, started", func() {
			systemctl(t, "stop", name)
			write("ExecStart=/bin/sleep 2000\nRestart=on-failure\n[Install]\nWantedBy=multi-user.target")
			wait() // between the scripts of a package there is time
			systemctl(t, "start", name)
		}, true, func() {}},
		{"restart by an operator", func() { systemctl(t, "restart", name) }, true, func() {}},
		{"stopped in a crash loop, while systemd waits to start it again", func() {
			write("ExecStart=/bin/false\nRestart=always\nRestartSec=1h\n[Install]\nWantedBy=multi-user.target")
			systemctl(t, "restart", name)
			awaitUnit(t, unit, func(p guard.Process) bool { return p.Restarting })
			systemctl(t, "stop", name)
		}, false, func() {
			write(service)
			systemctl(t, "start", name)
		}},
		{"the same with exit code 0", func() {
			write("ExecStart=/bin/true\nRestart=always\nRestartSec=1h\n[Install]\nWantedBy=multi-user.target")
			systemctl(t, "restart", name)
			awaitUnit(t, unit, func(p guard.Process) bool { return p.Restarting })
			systemctl(t, "stop", name)
		}, false, func() {
			write(service)
			systemctl(t, "start", name)
		}},
		{"disabled and stopped", func() { systemctl(t, "disable", "--runtime", "--now", name) }, false, func() {
			systemctl(t, "enable", "--runtime", name)
			systemctl(t, "start", name)
		}},
		{"package removed: stopped, and no unit file", func() {
			systemctl(t, "stop", name)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			systemctl(t, "daemon-reload")
		}, false, func() {
			write(service)
			systemctl(t, "start", name)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.do()
			wait()
			p, err := unit.State(t.Context())
			if exists := err == nil && p.Exists; exists != c.runs {
				t.Errorf("runs: %t, want %t: %+v (%v)", exists, c.runs, p, err)
			}
			if r := g.Report(); len(r.Restarts) != 0 {
				t.Errorf("the guard has restarted it: %+v", r.Restarts)
			}
			c.undo()
			awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists })
		})
	}
	write("ExecStart=/bin/sleep 3000") // systemd does not restart it
	systemctl(t, "restart", name)
	p := awaitUnit(t, unit, func(p guard.Process) bool { return p.Exists && p.Unit == "active/running" })
	signal(t, p.PID, syscall.SIGKILL)
	awaitUnit(t, unit, func(now guard.Process) bool { return now.Exists && now.PID != p.PID })
	if r := g.Report(); len(r.Restarts) != 1 {
		t.Errorf("a kubelet that was killed was restarted by the guard %d times, want once", len(r.Restarts))
	}
}
