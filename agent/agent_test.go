package agent

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/eviction"
	"github.com/statusd/statusd/internal/controlplanetest"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process"
)

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: sleeper}
spec:
  containers:
    - {name: main, image: host, command: [sleep, "1000000"]}
`

// testConfig is that of a standalone agent with directories of its own, one static pod, and
// containers that end with the test.
func testConfig(t *testing.T, node string) Config {
	t.Helper()
	dir := t.TempDir()
	c := Default()
	c.NodeName = node
	c.AllowPodsWithoutIsolation = true
	c.StateDir = filepath.Join(dir, "state")
	c.Manifests = filepath.Join(dir, "manifests")
	c.HealthzBindAddress = "127.0.0.1:0"
	c.Server.BindAddress = ""
	c.Eviction.Hard = eviction.Disabled() // whatever the disk of this machine has left
	if err := os.Mkdir(c.Manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Manifests, "sleeper.yaml"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		rt, err := process.New(process.Options{Dir: c.RuntimeDir()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := EndContainers(ctx, rt, 0); err != nil {
			t.Error(err)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// withProcesses completes options for an agent that runs pods as processes.
func withProcesses(c Config, options Options) Options {
	options.NewRuntime = func(node NodeServices) (runtime.Runtime, error) {
		rt, err := process.New(process.Options{
			Dir: node.Dir, Version: node.Version, Addresses: node.Addresses, Allocatable: node.Allocatable,
			Objects: node.Objects, APIServer: node.APIServer, Event: node.Event, Logger: node.Logger,
			AllowPodsWithoutIsolation: c.AllowPodsWithoutIsolation, CgroupParent: c.CgroupParent,
		})
		if err != nil {
			return nil, err
		}
		return rt, nil
	}
	return options
}

// run runs an agent until the test ends or stop is called.
func run(t *testing.T, c Config, change ...func(*Agent)) (a *Agent, stop func()) {
	t.Helper()
	return runWith(t, c, Options{}, change...)
}

// runWith runs an agent with options of its own.
func runWith(t *testing.T, c Config, options Options, change ...func(*Agent)) (a *Agent, stop func()) {
	t.Helper()
	options.Logger = controlplanetest.Logger(t)
	a, err := New(c, withProcesses(c, options))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(a)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return a, stop
}

// awaitReady follows the manager until it says that a pod is ready.
func awaitReady(t *testing.T, a *Agent, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	events := a.manager.Subscribe()
	defer events.Close()
	for _, pod := range a.manager.Statuses() { // it may have been ready before
		if pod.Name == name && isReady(&pod.Status) {
			return
		}
	}
	for {
		event, err := events.Next(ctx)
		if err != nil {
			t.Fatalf("pod %s did not get ready: %v", name, err)
		}
		if event.Name == name && isReady(&event.Status) {
			return
		}
	}
}

// awaitReadyMirror watches the API as an administrator until a mirror pod is ready.
func awaitReadyMirror(t *testing.T, server *controlplanetest.Server, namespace, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	w, err := server.Admin().CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if mirror, ok := event.Object.(*v1.Pod); ok && mirror.Name == name && isReady(&mirror.Status) {
			return
		}
	}
	t.Fatalf("mirror pod %s did not get ready before the watch ended: %v", name, ctx.Err())
}

func isReady(s *v1.PodStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func get(t *testing.T, a *Agent, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + a.Address() + path)
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

// Two agents share nothing: each has its node, its pods, its metrics and its log.
func TestTwoAgentsInOneProcess(t *testing.T) {
	first, stopFirst := run(t, testConfig(t, "first"))
	second, _ := run(t, testConfig(t, "second"))
	awaitReady(t, first, "sleeper-first")
	awaitReady(t, second, "sleeper-second")
	stopFirst()
	code, body := get(t, second, "/pods")
	var list v1.PodList
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
		t.Fatalf("got %d %s (%v)", code, body, err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "sleeper-second" || !isReady(&list.Items[0].Status) {
		t.Errorf("got %v, want the one pod of the second agent, ready", list.Items)
	}
	if list.Items[0].Spec.Containers[0].Command != nil {
		t.Errorf("the command of a container is shown: %v", list.Items[0].Spec)
	}
}

// A joined agent registers its node, mirrors its static pod, and leaves nothing behind in
// this process when it stops: TestMain looks for goroutines.
func TestJoinedAgentStopsCleanly(t *testing.T) {
	server := shared.Server(t)
	c := testConfig(t, "joined")
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("joined"); err != nil {
		t.Fatal(err)
	}
	a, stop := run(t, c)
	awaitReady(t, a, "sleeper-joined")
	awaitReadyMirror(t, server, metav1.NamespaceDefault, "sleeper-joined")
	if code, body := get(t, a, "/readyz?verbose"); code != http.StatusOK || !strings.Contains(body, "[+]node ok") {
		t.Errorf("readyz answers %d %q, want 200 with each check", code, body)
	}
	stop()
	node, err := server.Admin().CoreV1().Nodes().Get(t.Context(), "joined", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == v1.NodeReady && condition.Status != v1.ConditionTrue {
			t.Errorf("after a stop the node is %s (%s), want that it stays ready: its containers run on", condition.Status, condition.Reason)
		}
	}
}

// What makes the pod ready is gone when the second process starts, and the probe may fail
// for an hour: only the mirror can tell that the container was ready before.
func TestReadyStaticPodStaysReadyAcrossARestart(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	c := testConfig(t, "rejoined")
	mark := filepath.Join(t.TempDir(), "ready")
	manifest := `{apiVersion: v1, kind: Pod, metadata: {name: probed, namespace: ` + namespace + `}, spec: {containers: [{name: main, image: host, command: [sleep, "1000000"],
		readinessProbe: {exec: {command: [test, -e, ` + mark + `]}, periodSeconds: 1, failureThreshold: 3600}}]}}`
	for path, content := range map[string]string{mark: "", filepath.Join(c.Manifests, "probed.yaml"): manifest} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if c.Kubeconfig, err = server.Process.NodeKubeconfig("rejoined"); err != nil {
		t.Fatal(err)
	}
	_, stop := run(t, c)
	awaitReadyMirror(t, server, namespace, "probed-rejoined")
	stop()
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	again, _ := run(t, c, func(a *Agent) { a.apiPatience = time.Minute })
	awaitReady(t, again, "probed-rejoined")
}

// An API server that does not answer, such as one that is a static pod itself, keeps no
// static pod from running.
func TestStaticPodsRunWithoutAnswerOfTheAPI(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := testConfig(t, "alone")
	c.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	c.ShutdownTimeout = 20 * time.Second // of which the half is waited for a server that does not answer
	kubeconfig := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u}],
		clusters: [{name: c, cluster: {server: "http://` + silent.Addr().String() + `"}}]}`
	if err := os.WriteFile(c.Kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	a, _ := run(t, c)
	awaitReady(t, a, "sleeper-alone")

	// What is not in the API is shown, with what it waits for.
	var owed backlog
	code, body := get(t, a, "/debug/pending")
	if err := json.Unmarshal([]byte(body), &owed); err != nil || code != http.StatusOK {
		t.Fatalf("got %d %s (%v)", code, body, err)
	}
	if len(owed.Pending) != 1 || owed.Pending[0].Name != "sleeper-alone" || owed.Pending[0].Version <= owed.Pending[0].Accepted || owed.Pending[0].Since.IsZero() {
		t.Errorf("got %s, want the pod whose status is not in the API", body)
	}
	if owed.Fights == nil || owed.Journal.Outcome != "new" {
		t.Errorf("got %s, want no fights and a new journal", body)
	}
}

// Whatever can be found wrong early is found by New, in words that say what to do, and
// New lets go of what it had opened by then.
func TestWhatNewFindsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cases := []struct {
		name, want string
		spoil      func(*Config)
	}{
		{"port in use", "choose another --healthz-bind-address", func(c *Config) { c.HealthzBindAddress = taken.Addr().String() }},
		{"kubeconfig missing", "agent: kubeconfig: ", func(c *Config) { c.Kubeconfig = "/nowhere/kubeconfig" }},
		{"manifests are a file", "agent: manifests: ", func(c *Config) { c.Manifests += "/sleeper.yaml" }},
		{"state directory is a file", "agent: state directory: ", func(c *Config) { c.StateDir = c.Manifests + "/sleeper.yaml" }},
		{"invalid", "config: log.level: ", func(c *Config) { c.Log.Level = "loud" }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			good := testConfig(t, "early")
			bad := good
			c.spoil(&bad)
			if _, err := New(bad, withProcesses(bad, Options{Logger: slog.New(slog.DiscardHandler)})); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			a, err := New(good, withProcesses(good, Options{Logger: slog.New(slog.DiscardHandler)}))
			if err != nil {
				t.Fatalf("after the failure: %v", err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSecondAgentOnTheSameStateIsRefused(t *testing.T) {
	c := testConfig(t, "once")
	a, err := New(c, withProcesses(c, Options{Logger: slog.New(slog.DiscardHandler)}))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := New(c, withProcesses(c, Options{Logger: slog.New(slog.DiscardHandler)})); err == nil || !strings.Contains(err.Error(), "in use by another process; stop the other statusd") {
		t.Errorf("got %v, want that the directory is in use and what to do", err)
	}
}
