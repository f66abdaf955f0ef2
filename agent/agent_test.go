package agent

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/kubeletapi"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/test/nodetest"
	"github.com/statusd/statusd/test/testlog"
)

// testConfig is the configuration of a standalone agent with directories of its own, one static pod, and
// containers that end with the test.
func testConfig(t *testing.T, node string) Config {
	t.Helper()
	c := Embedded(node)
	c.StateDir, c.Manifests = nodetest.Dirs(t)
	c.HealthzBindAddress = "127.0.0.1:0"
	c.Server.BindAddress = ""
	c.Eviction.Hard = eviction.Disabled() // whatever the disk of this machine has left
	nodetest.EndContainers(t, c.RuntimeDir(), EndContainers)
	return c
}

// withProcesses completes options for an agent that runs pods as processes.
func withProcesses(c Config, options Options) Options {
	options.KubeletAPI = kubeletapi.ForNode
	options.NewRuntime = func(node NodeServices) (runtime.Runtime, error) {
		rt, err := process.New(process.Options{
			Dir: node.Dir, Version: node.Version, Addresses: node.Addresses, Allocatable: node.Allocatable,
			Objects: node.Objects, APIServer: node.APIServer, Event: node.Event, Logger: node.Logger,
			AllowPodsWithoutIsolation: true, CgroupParent: "/statusd",
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
	options.Logger = testlog.New(t)
	return nodetest.Start(t, func() (*Agent, error) { return New(c, withProcesses(c, options)) }, change...)
}

// awaitReady follows the manager until it says that a pod is ready.
func awaitReady(t *testing.T, a *Agent, name string) {
	t.Helper()
	nodetest.AwaitReady(t, a.manager, name)
}

// awaitStatus follows the manager until the status of a pod is as wanted.
func awaitStatus(t *testing.T, a *Agent, name, what string, wanted func(*v1.PodStatus) bool) v1.PodStatus {
	t.Helper()
	return nodetest.AwaitStatus(t, a.manager, name, what, wanted)
}

func isReady(s *v1.PodStatus) bool { return nodetest.IsReady(s) }

func get(t *testing.T, a *Agent, path string) (int, string) {
	t.Helper()
	return nodetest.Get(t, a.Address(), path)
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
		{"invalid", "config: shutdownTimeout: ", func(c *Config) { c.ShutdownTimeout = 0 }},
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
