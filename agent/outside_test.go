package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
)

func contains(err error, all ...string) bool {
	for _, part := range all {
		if !strings.Contains(err.Error(), part) {
			return false
		}
	}
	return true
}

// What a program forgets or contradicts is named, all of it.
func TestOptionsOfAnEmbedder(t *testing.T) {
	config := agent.Embedded("nowhere")
	config.StateDir = t.TempDir()
	config.Eviction.Hard = eviction.Disabled() // whatever the disk of this machine has left
	if _, err := agent.New(config, agent.Options{}); err == nil || !contains(err, "nothing would run the pods", "nowhere for pods to come from") {
		t.Errorf("got %v, want that a runtime and a source of pods are missing", err)
	}
	both := agent.Options{Runtime: runtimefake.New(), NewRuntime: func(agent.NodeServices) (runtime.Runtime, error) { return nil, nil }}
	if _, err := agent.New(config, both); err == nil || !contains(err, "both set") {
		t.Errorf("got %v, want that there are two runtimes", err)
	}
	broken := errors.New("no such hypervisor")
	config.Manifests = t.TempDir()
	_, err := agent.New(config, agent.Options{NewRuntime: func(agent.NodeServices) (runtime.Runtime, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
