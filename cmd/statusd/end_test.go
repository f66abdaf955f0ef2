package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/test/freeport"
)

// ready reports whether statusd says that a pod is ready.
func (d *daemon) ready(name string) bool {
	pod, ok := d.pod(name)
	return ok && condition(&pod, v1.PodReady) == "True"
}

// running reports whether a process of that command line exists.
func running(t *testing.T, words string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(strings.ReplaceAll(string(text), "\x00", " "), words) {
			return true
		}
	}
	return false
}

// uniqueSleep is a command that nothing else on this machine runs.
func uniqueSleep(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("sleep 1000000.%d%03d", os.Getpid(), unique.Add(1))
}

var unique atomic.Int32

// After end nothing runs of what statusd has started, even what hides from its shim and what no
// record names any more; after reset nothing is left on disk either.
func TestEndAndReset(t *testing.T) {
	d := newDaemon(t, "ending")
	marker := uniqueSleep(t)
	d.manifest("stubborn.yaml", `{apiVersion: v1, kind: Pod, metadata: {name: stubborn}, spec: {containers: [
		{name: main, image: host, command: [/bin/sh, -c, "trap '' TERM; setsid `+marker+` & while :; do sleep 0.1; done"]}]}}`)
	args := []string{"--state-dir", d.config.StateDir, "--grace", "100ms"}
	d.start()
	until(t, "the pod is ready", func() bool { return d.ready("stubborn-ending") })
	if err := command(append([]string{"end"}, args...), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("end beside a running statusd: got %v, want that the state is in use", err)
	}
	d.stop()
	if !running(t, marker) {
		t.Fatal("the container did not outlive statusd")
	}
	var out strings.Builder
	if err := command(append([]string{"end"}, args...), &out); err != nil || !strings.HasPrefix(out.String(), "ended 1 containers") {
		t.Errorf("end prints %q (%v), want one container", out.String(), err)
	}
	if running(t, marker) {
		t.Error("a process of the container is left")
	}

	d.start()
	until(t, "the pod is ready again", func() bool { return d.ready("stubborn-ending") })
	d.stop()
	if err := os.RemoveAll(filepath.Join(d.config.StateDir, "runtime")); err != nil { // as someone who cleans up by hand
		t.Fatal(err)
	}
	if err := command(append([]string{"reset"}, args...), &out); err == nil || !exists(d.config.StateDir) {
		t.Errorf("reset without --yes: got %v, want that it asks for it", err)
	}
	if err := command(append([]string{"reset", "--yes"}, args...), &out); err != nil {
		t.Error(err)
	}
	if running(t, marker) || exists(d.config.StateDir) {
		t.Errorf("left after reset: processes %t, state %t", running(t, marker), exists(d.config.StateDir))
	}
}

// SIGHUP reloads the config, a bad one is refused, and containers do not notice.
func TestHangupReloadsTheConfig(t *testing.T) {
	d := newDaemon(t, "reloading")
	d.manifest("static.yaml", staticManifest("static"))
	d.start()
	until(t, "the pod is ready", func() bool { return d.ready("static-reloading") })
	before, _ := d.pod("static-reloading")
	file := filepath.Join(filepath.Dir(d.config.StateDir), "statusd.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	writeFile(t, file, "nonsense")
	d.signal(syscall.SIGHUP)
	until(t, "the bad config is refused", func() bool { return strings.Contains(d.logged(), "config not reloaded") })
	if !d.ready("static-reloading") {
		t.Error("statusd does not run on with the config that it has")
	}

	old := d.config.HealthzBindAddress
	d.config.HealthzBindAddress = freeport.Address(t)
	writeFile(t, file, strings.ReplaceAll(string(text), old, d.config.HealthzBindAddress))
	d.signal(syscall.SIGHUP)
	until(t, "the endpoints are where the new config says", func() bool { return d.ready("static-reloading") })
	after, _ := d.pod("static-reloading")
	if a, b := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; a.ContainerID != b.ContainerID || b.RestartCount != 0 {
		t.Errorf("container %s became %s with %d restarts, want the same one", a.ContainerID, b.ContainerID, b.RestartCount)
	}
	d.stop()
}

// statusd drain ends the pods of the running statusd, and --undo lets static pods run again.
func TestDrainCommand(t *testing.T) {
	d := newDaemon(t, "draining")
	d.manifest("static.yaml", staticManifest("static"))
	d.start()
	until(t, "the pod is ready", func() bool { return d.ready("static-draining") })
	var out strings.Builder
	if err := command([]string{"drain", "--state-dir", d.config.StateDir}, &out); err != nil || out.String() != "drained: 0 pods of this node still run\n" {
		t.Errorf("drain prints %q (%v)", out.String(), err)
	}
	if d.ready("static-draining") {
		t.Error("the pod is ready after the drain")
	}
	if err := command([]string{"drain", "--undo", "--state-dir", d.config.StateDir}, &out); err != nil {
		t.Error(err)
	}
	until(t, "the pod is ready again", func() bool { return d.ready("static-draining") })
	d.stop()
	if err := command([]string{"drain", "--state-dir", d.config.StateDir}, &out); err == nil || !strings.Contains(err.Error(), "statusd is not running") {
		t.Errorf("got %v, want that statusd is not running", err)
	}
}
