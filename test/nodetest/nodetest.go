// Package nodetest is what tests of a whole node have in common, whatever type the node has.
package nodetest

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/test/orphans"
	"github.com/statusd/statusd/test/patience"
)

// Manifest is a static pod that runs until it is stopped.
const Manifest = `apiVersion: v1
kind: Pod
metadata: {name: sleeper}
spec:
  containers:
    - {name: main, image: host, command: [sleep, "1000000"]}
`

// Dirs are the state directory of a node, which does not exist yet, and the directory of its manifests, with [Manifest] in it.
func Dirs(t testing.TB) (state, manifests string) {
	t.Helper()
	dir := t.TempDir()
	state, manifests = filepath.Join(dir, "state"), filepath.Join(dir, "manifests")
	if err := os.Mkdir(manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(manifests, "sleeper.yaml"), []byte(Manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	orphans.EndBelow(t, state)
	return state, manifests
}

// EndContainers ends the containers of a node that runs pods as processes, at the end of the test. end is agent.EndContainers,
// which this package cannot import: the tests of that package use it.
func EndContainers(t testing.TB, runtimeDir string, end func(context.Context, runtime.Runtime, time.Duration) (int, error)) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		rt, err := process.New(process.Options{Dir: runtimeDir})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := end(ctx, rt, 0); err != nil {
			t.Error(err)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Start runs what made makes, after the changes, until the test ends or stop is called.
func Start[Node interface{ Run(context.Context) error }](t testing.TB, made func() (Node, error), change ...func(Node)) (node Node, stop func()) {
	t.Helper()
	node, err := made()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(node)
	}
	return node, Run(t, node.Run)
}

// Run runs a node until the test ends or stop is called. Run must end without an error.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the node ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// AwaitReady follows the manager until it says that a pod is ready.
func AwaitReady(t testing.TB, manager *status.Manager, name string) {
	t.Helper()
	AwaitStatus(t, manager, name, "that it is ready", IsReady)
}

// AwaitStatus follows the manager until a pod is reported as wanted.
func AwaitStatus(t testing.TB, manager *status.Manager, name, what string, wanted func(*v1.PodStatus) bool) v1.PodStatus {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	events := manager.Subscribe()
	defer events.Close()
	for _, pod := range manager.Statuses() { // it may have been so before
		if pod.Name == name && wanted(&pod.Status) {
			return pod.Status
		}
	}
	for {
		event, err := events.Next(ctx)
		if err != nil {
			t.Fatalf("pod %s: waited in vain for %s: %v", name, what, err)
		}
		if event.Name == name && wanted(&event.Status) {
			return event.Status
		}
	}
}

// IsReady reports whether the condition Ready is True.
func IsReady(s *v1.PodStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// Get reads a path of the endpoints of a node.
func Get(t testing.TB, address, path string) (int, string) {
	t.Helper()
	return Read(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, "http://"+address+path)
}

// Read reads the content of a URL.
func Read(t testing.TB, client *http.Client, url string) (int, string) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
