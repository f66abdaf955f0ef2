package run

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/runtime"
	runtimeprocess "github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/test/nodetest"
	"github.com/statusd/statusd/test/testlog"
)

// testConfig is the configuration of a standalone agent with directories of its own, one static pod, and
// containers that end with the test.
func testConfig(t *testing.T, node string) Config {
	t.Helper()
	c := Default()
	c.NodeName = node
	c.AllowPodsWithoutIsolation = true
	c.StateDir, c.Manifests = nodetest.Dirs(t)
	c.HealthzBindAddress = "127.0.0.1:0"
	c.Server.BindAddress = ""
	c.Eviction.Hard = eviction.Disabled() // whatever the disk of this machine has left
	nodetest.EndContainers(t, c.RuntimeDir(), agent.EndContainers)
	return c
}

// withProcesses completes options for an agent that runs pods as processes.
func withProcesses(c Config, options agent.Options) agent.Options {
	options.NewRuntime = func(node agent.NodeServices) (runtime.Runtime, error) {
		rt, err := runtimeprocess.New(runtimeprocess.Options{
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

// started runs a process until the test ends or stop is called.
func started(t *testing.T, c Config, change ...func(*Process)) (a *Process, stop func()) {
	t.Helper()
	return startedWith(t, c, agent.Options{}, change...)
}

// startedWith runs a process with options of its own.
func startedWith(t *testing.T, c Config, options agent.Options, change ...func(*Process)) (a *Process, stop func()) {
	t.Helper()
	options.Logger = testlog.New(t)
	return nodetest.Start(t, func() (*Process, error) { return New(c, withProcesses(c, options)) }, change...)
}

// awaitReady follows the manager until it says that a pod is ready.
func awaitReady(t *testing.T, a *Process, name string) {
	t.Helper()
	nodetest.AwaitReady(t, a.node.Manager, name)
}

// awaitStatus follows the manager until the status of a pod is as wanted.
func awaitStatus(t *testing.T, a *Process, name, what string, wanted func(*v1.PodStatus) bool) v1.PodStatus {
	t.Helper()
	return nodetest.AwaitStatus(t, a.node.Manager, name, what, wanted)
}

func isReady(s *v1.PodStatus) bool { return nodetest.IsReady(s) }

func get(t *testing.T, a *Process, path string) (int, string) {
	t.Helper()
	return nodetest.Get(t, a.Address(), path)
}

// await waits until something is so.
func await(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		if !backoff.Sleep(t.Context(), 10*time.Millisecond) {
			t.Fatal("the test has ended")
		}
	}
}
