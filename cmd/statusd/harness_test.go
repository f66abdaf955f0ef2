package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/mounts"
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/test/child"
	"github.com/statusd/statusd/test/freeport"
	"github.com/statusd/statusd/test/orphans"
)

// patience is what a test waits for something that should come, before it says that it
// did not. It is long, because the machine may be busy; a good run never waits that long.
const patience = 10 * time.Minute

// daemon is a statusd in a process of its own.
type daemon struct {
	t      *testing.T
	config run.Config
	log    string // file
	env    []string
	flags  []string // of statusd run, beside --config

	process *child.Process // nil: it was not started yet
}

// newDaemon makes a statusd with state and manifests of its own. What it leaves running
// ends with the test.
func newDaemon(t *testing.T, node string) *daemon {
	t.Helper()
	dir := t.TempDir()
	d := &daemon{t: t, config: run.Default(), log: filepath.Join(dir, "statusd.log")}
	d.config.NodeName = node
	d.config.AllowPodsWithoutIsolation = true
	d.config.StateDir = filepath.Join(dir, "state")
	d.config.Manifests = filepath.Join(dir, "manifests")
	d.config.HealthzBindAddress = freeport.Address(t)
	d.config.Server.BindAddress = ""
	d.config.Eviction.Hard = eviction.Disabled() // whatever the disk of this machine has left
	d.config.ShutdownTimeout = 2 * patience      // however slow the machine is
	if err := os.Mkdir(d.config.Manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	orphans.EndBelow(t, d.config.StateDir)
	t.Cleanup(d.clearUp)
	return d
}

// start runs statusd. It may be called again after the last one has ended.
func (d *daemon) start() {
	d.t.Helper()
	file := d.configFile()
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(os.Args[0], append([]string{"run", "--config", file}, d.flags...)...)
	cmd.Env = append(os.Environ(), d.env...)
	cmd.Stderr = log
	if d.process, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
}

// configFile writes the config and returns where.
func (d *daemon) configFile() string {
	d.t.Helper()
	text, err := yaml.Marshal(d.config)
	if err != nil {
		d.t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(d.config.StateDir), "statusd.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return file
}

func (d *daemon) signal(s syscall.Signal) {
	d.t.Helper()
	if d.process.HasExited() {
		d.t.Fatalf("statusd ended before signal %v: %v; its log:\n%s", s, d.process.Err(), d.logged())
	}
	d.process.Signal(s)
}

// wait returns when statusd is gone, and how it ended.
func (d *daemon) wait() error {
	d.t.Helper()
	select {
	case <-d.process.Exited:
		return d.process.Err()
	case <-time.After(patience):
		d.t.Fatalf("statusd does not end; its log:\n%s", d.logged())
		return nil
	}
}

// stop ends statusd as an operator does.
func (d *daemon) stop() {
	d.t.Helper()
	d.signal(syscall.SIGTERM)
	if err := d.wait(); err != nil {
		d.t.Errorf("statusd ended with %v; its log:\n%s", err, d.logged())
	}
}

// kill ends it as a crash does.
func (d *daemon) kill() {
	d.t.Helper()
	d.signal(syscall.SIGKILL)
	_ = d.wait()
}

func (d *daemon) logged() string {
	text, err := os.ReadFile(d.log)
	return fmt.Sprint(string(text), errors.Join(err))
}

func (d *daemon) clearUp() {
	if d.process == nil {
		return
	}
	d.process.Kill()
	if d.t.Failed() {
		d.t.Logf("log of statusd:\n%s", d.logged())
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := endContainers(ctx, d.config, 0); err != nil {
		d.t.Error(err)
	}
	if err := mounts.UnmountBelow(d.config.StateDir); err != nil { // volumes in memory outlive statusd
		d.t.Error(err)
	}
}

// get asks an endpoint of statusd.
func (d *daemon) get(path string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://"+d.config.HealthzBindAddress+path, nil)
	if err != nil {
		return 0, "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// pod is what statusd itself says of a pod.
func (d *daemon) pod(name string) (v1.Pod, bool) {
	_, body, err := d.get("/pods")
	var list v1.PodList
	if err != nil || json.Unmarshal([]byte(body), &list) != nil {
		return v1.Pod{}, false // not up yet
	}
	for _, pod := range list.Items {
		if pod.Name == name {
			return pod, true
		}
	}
	return v1.Pod{}, false
}

// manifest writes a manifest.
func (d *daemon) manifest(file, text string) {
	d.t.Helper()
	writeFile(d.t, filepath.Join(d.config.Manifests, file), text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	// As editors do: the file is there as a whole or not at all.
	if err := errors.Join(os.WriteFile(path+"~", []byte(text), 0o644), os.Rename(path+"~", path)); err != nil {
		t.Fatal(err)
	}
}

// until looks again and again until what is wanted is so.
func until(t *testing.T, what string, wanted func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); !wanted(); <-ticker.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func condition(pod *v1.Pod, kind v1.PodConditionType) string {
	for _, c := range pod.Status.Conditions {
		if c.Type != kind {
			continue
		}
		if c.Reason != "" {
			return string(c.Status) + ":" + c.Reason
		}
		return string(c.Status)
	}
	return "missing"
}

// podDirectory is where the runtime keeps a pod.
func (d *daemon) podDirectory(pod *v1.Pod) string {
	return filepath.Join(d.config.StateDir, "runtime", "pods", string(pod.UID))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
