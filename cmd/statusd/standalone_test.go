package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// Without an API server statusd runs static pods, shows them, and leaves them running when
// it stops; the next one adopts them.
func TestStandalone(t *testing.T) {
	d := newDaemon(t, "alone")
	d.manifest("static.yaml", staticManifest("static"))
	d.start()
	ready := func() bool {
		pod, ok := d.pod("static-alone")
		return ok && condition(&pod, v1.PodReady) == "True"
	}
	until(t, "the static pod is ready", ready)
	before, _ := d.pod("static-alone")
	d.stop()
	d.start()
	until(t, "the static pod is ready again", ready)
	after, _ := d.pod("static-alone")
	if a, b := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; a.ContainerID != b.ContainerID || b.RestartCount != 0 {
		t.Errorf("container %s became %s with %d restarts, want the same one", a.ContainerID, b.ContainerID, b.RestartCount)
	}
	if code, body, err := d.get("/readyz?verbose"); code != http.StatusOK || !strings.Contains(body, "[+]manifests ok") {
		t.Errorf("readyz answers %d %q (%v), want 200 and its check", code, body, err)
	}
	if _, body, _ := d.get("/metrics"); !strings.Contains(body, "statusd_pods 1\n") {
		t.Errorf("metrics do not count one pod:\n%s", body)
	}
	d.stop()
}

// None of the bad manifests keeps a good one from running, and config check names each of
// them with its file.
func TestBadManifests(t *testing.T) {
	d := newDaemon(t, "tolerant")
	bad, err := filepath.Glob("../../internal/node/manifest/testdata/bad/*")
	if err != nil || len(bad) == 0 {
		t.Fatalf("no bad manifests found: %v", err)
	}
	for _, file := range bad {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d.manifest(filepath.Base(file), string(data))
	}
	d.manifest("good.yaml", staticManifest("good"))
	d.start()
	until(t, "the good pod is ready", func() bool {
		pod, ok := d.pod("good-tolerant")
		return ok && condition(&pod, v1.PodReady) == "True"
	})
	d.stop()

	output, err := exec.Command(os.Args[0], "config", "check", filepath.Join(filepath.Dir(d.config.StateDir), "statusd.yaml")).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("config check ends with %v, want exit code 1", err)
	}
	for _, file := range bad {
		if name := filepath.Join(d.config.Manifests, filepath.Base(file)) + ":"; !bytes.Contains(output, []byte(name)) {
			t.Errorf("config check does not name %s:\n%s", name, output)
		}
	}
}

// The first signal stops in order and within a bound, the second at once.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	// A server that takes connections and says nothing makes a stop take its time.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	d := newDaemon(t, "impatient")
	d.config.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	d.config.ShutdownTimeout = 2 * patience
	writeFile(t, d.config.Kubeconfig, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://`+silent.Addr().String()+`"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`)
	d.manifest("static.yaml", staticManifest("static"))
	d.start()
	until(t, "the static pod is ready", func() bool {
		pod, ok := d.pod("static-impatient")
		return ok && condition(&pod, v1.PodReady) == "True"
	})
	d.signal(syscall.SIGTERM)
	until(t, "statusd is stopping", func() bool { return strings.Contains(d.logged(), `part=workers`) })
	d.signal(syscall.SIGTERM)
	exit, ok := errors.AsType[*exec.ExitError](d.wait())
	if !ok || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("statusd ended with %v, want that the second signal ended it", d.process.Err())
	}
}

// systemd hears that statusd is up, that it is alive, and that it stops.
func TestSystemd_ReadyAliveAndStopping_AreNotified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	d := newDaemon(t, "supervised")
	d.env = []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=100000"}
	d.start()
	hear := func() string {
		buffer := make([]byte, 100)
		n, err := socket.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := hear(); got != want {
			t.Errorf("systemd hears %q, want %q", got, want)
		}
	}
	d.signal(syscall.SIGTERM)
	got := hear()
	for got == "WATCHDOG=1" {
		got = hear()
	}
	if got != "STOPPING=1" {
		t.Errorf("systemd hears %q, want STOPPING=1", got)
	}
	if err := d.wait(); err != nil {
		t.Errorf("statusd ended with %v", err)
	}
}
